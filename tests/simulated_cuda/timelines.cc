// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: work in order on streams, captured or run on threads.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "rewire/tests/simulated_cuda/simulator.h"

namespace rewire::simulated_cuda {

Timeline* Simulator::NewTimeline() {
  if (!idle_timelines_.empty()) {
    Timeline* timeline = idle_timelines_.back();
    idle_timelines_.pop_back();
    return timeline;
  }
  timelines_.push_back(std::make_unique<Timeline>());
  timelines_.back()->index = static_cast<std::uint32_t>(timelines_.size() - 1);
  return timelines_.back().get();
}

void Simulator::EndTimeline(Timeline* timeline) { idle_timelines_.push_back(timeline); }

std::uint64_t Simulator::Duration(const Work& work) const {
  switch (work.kind) {
    case 'k':
      return costs.launch;
    case 'h':
    case 'd':
    case 'p':
    case 'm':
      return costs.copy + static_cast<std::uint64_t>(costs.copy_per_byte * static_cast<double>(work.bytes));
    default:
      return 0;
  }
}

// How late the work begins, by chance but the same for the same seed.
std::uint64_t Simulator::Delay(Moment moment) const {
  if (costs.most_delay == 0) return 0;
  std::uint64_t mixed =
      costs.delay_seed * 0x9e3779b97f4a7c15 + moment.timeline * 0xbf58476d1ce4e5b9 + moment.number;
  mixed ^= mixed >> 31;
  mixed *= 0x94d049bb133111eb;
  mixed ^= mixed >> 29;
  return mixed % costs.most_delay;
}

// Gives work its virtual time: kernels of a device are one after another, and so are copies in and copies
// out.
std::uint64_t Simulator::Place(Device& device, const Work& work, std::uint64_t ready, std::uint32_t stream) {
  std::uint64_t* engine = nullptr;
  if (work.kind == 'k' || work.kind == 'm' || work.kind == 'p') engine = &device.busy_until[0];
  if (work.kind == 'h') engine = &device.busy_until[1];
  if (work.kind == 'd') engine = &device.busy_until[2];
  if (engine != nullptr) ready = std::max(ready, *engine);
  const std::uint64_t end = ready + Duration(work);
  if (engine != nullptr) *engine = end;
  switch (work.kind) {
    case 'k':
      ++since.launches;
      break;
    case 'h':
    case 'd':
    case 'p':
      ++since.copies;
      break;
    case 'm':
      ++since.fills;
      break;
    case 'f':
      ++since.host_functions;
      break;
    default:
      break;
  }
  if (log_on && work.kind != 0) {
    LogEntry entry = {work.kind, device.index, stream, work.bytes, ready, end, {}};
    std::strncpy(entry.name, work.name.c_str(), sizeof(entry.name) - 1);
    log.push_back(entry);
  }
  return end;
}

CUresult Simulator::CheckUses(Work* work, Moment moment, const Clock& clock) {
  std::vector<std::string> problems;
  CUresult result = CUDA_SUCCESS;
  for (const MemoryUse& use : work->uses) {
    Device* device = DeviceOf(use.address);
    if (device != nullptr) {
      if (!device->memory.Use(use, moment, clock, &problems, &work->missed))
        result = CUDA_ERROR_ILLEGAL_ADDRESS;
    } else if (work->kind == 'k' && use.address != 0 && !IsPinned(use.address, use.bytes) &&
               !IsModuleGlobal(use.address)) {
      problems.push_back(fmt::format("{:#x} is neither device memory nor pinned memory", use.address));
      result = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  }
  for (std::string& problem : problems)
    Violation(fmt::format("{}: {}", work->name.empty() ? "work" : work->name, problem));
  return result;
}

CUresult Simulator::Enqueue(Stream* stream, Work work) {
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Graph& graph = *stream->capture->graph;
    if (work.kind != 0 || work.run) {
      graph.nodes.push_back({std::move(work), stream->capture_last});
      stream->capture_last = {graph.nodes.size() - 1};
    }
    return CUDA_SUCCESS;
  }
  Timeline& timeline = *stream->timeline;
  Device* device = stream->device;
  // The legacy default stream and the streams that are not made non-blocking wait for each other.
  if (stream == &device->legacy) {
    for (auto& [handle, other] : streams)
      if (other->device == device && other->is_blocking() && other->capture == nullptr)
        OrderAfter(stream, other->timeline->now(), other->timeline->clock, other->timeline->end);
    for (auto& [thread, other] : device->per_thread)
      OrderAfter(stream, other.timeline->now(), other.timeline->clock, other.timeline->end);
  } else if (stream->is_blocking()) {
    OrderAfter(stream, device->legacy.timeline->now(), device->legacy.timeline->clock,
               device->legacy.timeline->end);
  }
  timeline.clock.Join(host_clock_);
  const Moment moment = {timeline.index, timeline.last + 1};
  const CUresult wrong = CheckUses(&work, moment, timeline.clock);
  if (wrong != CUDA_SUCCESS && work.kind != 'k') return CUDA_ERROR_INVALID_VALUE;
  timeline.clock.Add(moment);
  timeline.last = moment.number;
  timeline.end = Place(*device, work, std::max(timeline.end, host_time_), timeline.index);
  Queued queued;
  queued.number = moment.number;
  queued.after = std::move(work.missed);
  queued.device = device;
  queued.kind = work.kind;
  queued.duration = Duration(work);
  queued.clock = timeline.clock;
  const CUresult injected =
      work.kind == 0 ? CUDA_SUCCESS : Injected(&work_failures, std::string_view(&work.kind, 1));
  if (wrong != CUDA_SUCCESS || injected != CUDA_SUCCESS)
    queued.run = [code = wrong != CUDA_SUCCESS ? wrong : injected] { return code; };
  else
    queued.run = std::move(work.run);
  // Waits of the stream come in front of the work as queued entries of their own.
  timeline.queue.push_back(std::move(queued));
  if (!timeline.thread.joinable()) timeline.thread = std::thread([this, &timeline] { Run(&timeline); });
  timeline.wake.notify_one();
  return CUDA_SUCCESS;
}

CUresult Simulator::LaunchGraph(Stream* stream, const std::shared_ptr<Graph>& graph) {
  Timeline& timeline = *stream->timeline;
  // All nodes are one piece of work of the stream; their virtual times follow the graph's own order.
  Work whole;
  for (const Graph::Node& node : graph->nodes) {
    for (MemoryUse use : node.work.uses) {
      use.exact = false;  // nodes are ordered by the graph, not by the stream
      whole.uses.push_back(use);
    }
  }
  whole.name = "graph";
  std::vector<std::pair<std::function<CUresult()>, char>> steps;
  for (const Graph::Node& node : graph->nodes) {
    CUresult injected = CUDA_SUCCESS;
    if (node.work.kind != 0) injected = Injected(&work_failures, std::string_view(&node.work.kind, 1));
    if (injected != CUDA_SUCCESS)
      steps.emplace_back([injected] { return injected; }, node.work.kind);
    else
      steps.emplace_back(node.work.run, node.work.kind);
  }
  whole.run = [graph, steps = std::move(steps)] {
    for (const auto& [step, kind] : steps) {
      const CUresult result = step ? step() : CUDA_SUCCESS;
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  };
  const std::uint64_t begin = std::max(timeline.end, host_time_);
  const CUresult result = Enqueue(stream, std::move(whole));
  if (result != CUDA_SUCCESS) return result;
  ++since.graph_launches;
  std::vector<std::uint64_t> ends;
  std::uint64_t real = 0;
  for (const Graph::Node& node : graph->nodes) {
    std::uint64_t ready = begin;
    for (const std::size_t before : node.after) ready = std::max(ready, ends[before]);
    ends.push_back(Place(*stream->device, node.work, ready, timeline.index));
    timeline.end = std::max(timeline.end, ends.back());
    real = std::max(real, ends.back() - begin);
  }
  if (!timeline.queue.empty()) timeline.queue.back().duration = real;
  return CUDA_SUCCESS;
}

void Simulator::OrderAfter(Stream* stream, Moment moment, const Clock& clock, std::uint64_t time) {
  Timeline& timeline = *stream->timeline;
  timeline.end = std::max(timeline.end, time);
  if (timeline.clock.Covers(moment)) return;
  timeline.clock.Join(clock);
  if (IsDone(moment)) return;
  Queued wait;
  wait.number = ++timeline.last;
  wait.after = {moment};
  timeline.clock.Add(timeline.now());
  timeline.queue.push_back(std::move(wait));
  if (!timeline.thread.joinable()) timeline.thread = std::thread([this, &timeline] { Run(&timeline); });
  timeline.wake.notify_one();
}

void Simulator::RecordEvent(Event* event, Stream* stream) {
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    event->capture_last = stream->capture_last;
    event->recorded = true;
    return;
  }
  if (stream == &stream->device->legacy || stream->is_blocking()) Enqueue(stream, Work());
  event->recorded = true;
  event->moment = stream->timeline->now();
  event->clock = stream->timeline->clock;
  event->time = std::max(stream->timeline->end, host_time_);
}

void Simulator::HostKnows(const Clock& clock, std::uint64_t time) {
  host_clock_.Join(clock);
  host_time_ = std::max(host_time_, time);
}

void Simulator::Wait(std::unique_lock<std::mutex>* lock, Moment moment, const Clock& clock,
                     std::uint64_t time) {
  ++since.host_waits;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): what it is taken from may change meanwhile.
  const Clock known = clock;
  progress_.wait(*lock, [this, moment] { return IsDone(moment); });
  HostKnows(known, time);
  for (const auto& device : devices) device->memory.Trim(device->pool_threshold, host_clock_);
}

void Simulator::WaitForStream(std::unique_lock<std::mutex>* lock, const Stream& stream) {
  Wait(lock, stream.timeline->now(), stream.timeline->clock, stream.timeline->end);
}

void Simulator::WaitForDevice(std::unique_lock<std::mutex>* lock, Device* device) {
  std::vector<Timeline*> theirs = {device->legacy.timeline};
  for (auto& [handle, stream] : streams)
    if (stream->device == device) theirs.push_back(stream->timeline);
  for (auto& [thread, stream] : device->per_thread) theirs.push_back(stream.timeline);
  // Streams that were destroyed may still have work.
  theirs.insert(theirs.end(), idle_timelines_.begin(), idle_timelines_.end());
  ++since.host_waits;
  for (Timeline* timeline : theirs) {
    const Moment moment = timeline->now();
    const Clock clock = timeline->clock;
    const std::uint64_t end = timeline->end;
    progress_.wait(*lock, [this, moment] { return IsDone(moment); });
    HostKnows(clock, end);
  }
  device->memory.Trim(device->pool_threshold, host_clock_);
}

void Simulator::Run(Timeline* timeline) {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    timeline->wake.wait(lock, [timeline] { return !timeline->queue.empty(); });
    Queued work = std::move(timeline->queue.front());
    timeline->queue.pop_front();
    for (const Moment moment : work.after) progress_.wait(lock, [this, moment] { return IsDone(moment); });
    const std::uint64_t delay = work.after.empty() ? Delay({timeline->index, work.number}) : 0;
    const auto real =
        static_cast<std::uint64_t>(costs.real_time * static_cast<double>(work.duration)) + delay;
    const bool runs =
        work.run && (work.device == nullptr || work.device->lost == CUDA_SUCCESS || work.kind == 'f');
    if (real > 0 || runs) {
      lock.unlock();
      if (real > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(real));
      const CUresult result = runs ? work.run() : CUDA_SUCCESS;
      work.run = nullptr;  // what it holds is released without the mutex
      lock.lock();
      if (result != CUDA_SUCCESS && work.device->lost == CUDA_SUCCESS) work.device->lost = result;
      // The function may have told the host, which then knows all that came before.
      if (work.kind == 'f') host_clock_.Join(work.clock);
    }
    timeline->done = work.number;
    progress_.notify_all();
  }
}

}  // namespace rewire::simulated_cuda
