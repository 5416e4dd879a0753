// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/model_queue.h"

#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "rewire/serve/core/sequence_step.h"
#include "rewire/serve/run/held_sequence.h"
#include "rewire/serve/run/request_check.h"
#include "rewire/serve/run/text_inputs.h"

namespace rewire::serve {
namespace {

// A run that takes less is done where the request arrived: waking another thread takes some 10 us of two
// CPUs, and while it goes on, the other connections of the loop wait.
constexpr std::uint64_t kShortNs = 150000;
// After this time of short runs, a worker goes on with the queue, so that the loop looks at its connections.
constexpr std::uint64_t kTurnNs = 1000000;

std::uint64_t Nanoseconds(Clock::duration time) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()));
}

void Add(DurationCount* count, Clock::duration time) {
  ++count->count;
  count->ns += Nanoseconds(time);
}

// The line of the log for a request that has ended.
std::string LineOf(const Request& request) {
  std::string line = "request";
  if (!request.id.empty()) line += " '" + std::string(request.id) + "'";
  line += " of model " + std::string(request.used_model) + ", version " + std::string(request.used_version);
  line += ", after " + std::to_string(Nanoseconds(Clock::now() - request.submitted) / 1000) + " us: ";
  return line + (request.status ? std::string("answered") : request.status.error().message());
}

// CPU time of this thread.
std::uint64_t ThreadNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t InputBytes(const Instance& instance) {
  std::uint64_t bytes = 0;
  for (const Request* member : instance.members) {
    for (const InputTensor& input : member->inputs) bytes += input.data.size();
  }
  return bytes;
}

}  // namespace

ModelQueue::ModelQueue(std::shared_ptr<const ModelVersion> model, Runners* runners)
    : model_(std::move(model)),
      runners_(runners),
      sequences_(*model_),
      prefixes_(model_->settings.generator.prefix_bytes) {
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::uint32_t wanted = model_->settings.instances;
  const std::uint32_t count =
      wanted != 0 ? wanted : std::max(1U, cores / static_cast<std::uint32_t>(model_->settings.threads));
  for (std::uint32_t i = 0; i < count; ++i) {
    instances_.push_back(std::make_unique<Instance>(*model_, &placing_));
    idle_.push_back(instances_.back().get());
  }
}

void ModelQueue::Finish(Request* request) {
  request->used_model = model_->name;
  request->used_version = model_->version;
  WriteLog(runners_->log, ServerLogLevel::kDebug, [&] { return LineOf(*request); });
  runners_->in_flight.fetch_sub(1, std::memory_order_relaxed);
  request->Finish();
}

void ModelQueue::Check(Request* request) const {
  thread_local std::vector<std::int64_t> sizes;
  const SequenceStep& step = request->step;
  const bool in_sequence = IsOfSequence(step) || (request->held != nullptr && !model_->state.empty());
  request->status = ReplaceTexts(model_->signature, request);
  if (!in_sequence && (step.start || step.end)) {
    request->status =
        Fail(StatusCode::kInvalidArgument, "sequence_start and sequence_end need a sequence_id other than 0");
  } else if (in_sequence && model_->state.empty()) {
    request->status =
        Fail(StatusCode::kUnsupported,
             "model '{}' keeps no state for sequences: its settings have no sequence.state", model_->name);
  } else if (in_sequence && request->status) {
    request->status = AddStateInputs(*model_, request);
  }
  if (request->status) request->status = CheckRequest(model_->signature, request, &sizes, !in_sequence);
  const std::int64_t most = model_->settings.batching.max_batch_size;
  if (!request->status || most == 0) return;
  if (request->rows > most) {
    request->status =
        Fail(StatusCode::kInvalidArgument, "the batch has {} rows, and max_batch_size of model '{}' is {}",
             request->rows, model_->name, most);
  }
}

bool ModelQueue::Enqueue(Request* request) {
  request->submitted = Clock::now();
  if (model_->settings.timeout_us != 0 && request->deadline == Clock::time_point::max()) {
    request->deadline = request->submitted + std::chrono::microseconds(model_->settings.timeout_us);
  }
  Check(request);
  std::vector<EvictedSequence> evicted;
  bool waits = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::uint32_t room = model_->settings.max_queue_size;
    if (request->status && room != 0 && waiting_.size() >= room) {
      request->status =
          Fail(StatusCode::kBusy, "the queue of model '{}' is full: {} requests wait; try again later",
               model_->name, room);
      ++statistics_.rejected;
    }
    if (request->status) request->status = Join(request);
    waits = static_cast<bool>(request->status);
    if (waits) {
      waiting_.push_back(request);
      first_deadline_ = std::min(first_deadline_, request->deadline);
    } else {
      Add(&statistics_.fail, Clock::now() - request->submitted);
    }
    evicted = sequences_.TakeEvicted();
  }
  Tell(evicted);
  if (!waits) Finish(request);
  return waits;
}

void ModelQueue::Tell(const std::vector<EvictedSequence>& evicted) const {
  for (const EvictedSequence& one : evicted) {
    WriteLog(runners_->log, ServerLogLevel::kInfo, [&] { return one.why; });
    if (runners_->evicted) runners_->evicted(model_->name, one.name, one.why);
  }
}

Status ModelQueue::Join(Request* request) {
  if (request->held != nullptr) {
    const auto& sequence = static_cast<const HeldSequence&>(*request->held).sequence();
    return sequence == nullptr ? Status() : Sequences::JoinHeld(sequence, request);
  }
  return IsOfSequence(request->step) ? sequences_.Join(request) : Status();
}

Result<std::shared_ptr<Sequence>> ModelQueue::BeginHeld() {
  if (model_->state.empty()) return std::shared_ptr<Sequence>();
  std::unique_lock<std::mutex> lock(mutex_);
  Result<std::shared_ptr<Sequence>> sequence = sequences_.BeginHeld();
  const std::vector<EvictedSequence> evicted = sequences_.TakeEvicted();
  lock.unlock();
  Tell(evicted);
  return sequence;
}

void ModelQueue::EndHeld(Sequence* sequence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sequences_.EndHeld(sequence);
}

void ModelQueue::TakeLate(Clock::time_point now, Ended* ended) {
  Clock::time_point next = first_deadline_;
  if (model_->state.empty() && now < next) {
    if (next != Clock::time_point::max()) SetAlarm(next);
    return;
  }
  next = Clock::time_point::max();
  const auto late = [&](Request* request) {
    if (request->sequence != nullptr && !request->sequence->gone) {
      request->status = request->sequence->gone;
    } else if (request->deadline > now) {
      next = std::min(next, request->deadline);
      return false;
    } else {
      request->status =
          Fail(StatusCode::kDeadlineExceeded,
               "the request has waited until its time was over; model '{}' is too busy", model_->name);
    }
    sequences_.Leave(request, false, now);
    Add(&statistics_.fail, now - request->submitted);
    ended->requests.push_back(request);
    return true;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), late), waiting_.end());
  first_deadline_ = next;
  next = std::min(next, sequences_.EndIdle(now));
  if (next != Clock::time_point::max()) SetAlarm(next);
}

void ModelQueue::SetAlarm(Clock::time_point when) {
  if (when >= alarm_) return;
  alarm_ = when;
  const std::weak_ptr<ModelQueue> weak = weak_from_this();
  runners_->alarms->At(when, [weak] {
    if (const std::shared_ptr<ModelQueue> self = weak.lock()) self->OnAlarm();
  });
}

void ModelQueue::OnAlarm() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    alarm_ = Clock::time_point::max();
  }
  Start(false);
}

bool ModelQueue::IsShort(const Instance& instance) const {
  if (run_ns_ == 0) return false;
  const std::uint64_t times =
      std::max<std::uint64_t>(1, InputBytes(instance) / std::max<std::uint64_t>(1, run_bytes_));
  // A batch may take what its requests might take one by one.
  const std::uint64_t most = std::min<std::uint64_t>(kTurnNs, kShortNs * instance.members.size());
  return times < most && run_ns_ * times < most;
}

Instance* ModelQueue::Take(bool* is_short) {
  Ended ended;
  std::vector<EvictedSequence> evicted;
  Instance* instance = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Clock::time_point now = Clock::now();
    TakeLate(now, &ended);
    instance = NextBatch(now);
    *is_short = instance != nullptr && IsShort(*instance);
    evicted = sequences_.TakeEvicted();
  }
  Tell(evicted);
  for (Request* request : ended.requests) Finish(request);
  return instance;
}

void ModelQueue::Start(bool here) {
  const Clock::time_point begin = Clock::now();
  bool is_short = false;
  while (Instance* const instance = Take(&is_short)) {
    if (here && is_short && Nanoseconds(Clock::now() - begin) < kTurnNs) {
      RunOnce(instance);
    } else {
      runners_->workers->Run([self = shared_from_this(), instance] { self->Work(instance); });
    }
  }
}

void ModelQueue::Work(Instance* instance) {
  bool is_short = false;
  for (; instance != nullptr; instance = Take(&is_short)) RunOnce(instance);
}

void ModelQueue::RunOnce(Instance* instance) {
  // The run does not cost what other processes take of the CPU meanwhile. Several threads, and the process of
  // a sandbox, take time that this thread does not.
  const bool by_cpu = model_->settings.threads == 1 && !model_->settings.sandbox.enabled;
  const std::uint64_t begin = instance->is_timed && by_cpu ? ThreadNanoseconds() : 0;
  const RunTimes times = instance->Run(instance->members, instance->rows, instance->padded);
  const std::uint64_t took =
      instance->is_timed && by_cpu ? ThreadNanoseconds() - begin : Nanoseconds(times.end - times.start);
  std::vector<Request*> done;
  std::vector<EvictedSequence> evicted;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Count(*instance, times);
    if (ChoosesByCost()) CountCosts(*instance, took);
    for (Request* member : instance->members) sequences_.Leave(member, true, times.end);
    done.swap(instance->members);
    idle_.push_back(instance);
    evicted = sequences_.TakeEvicted();
  }
  Tell(evicted);
  for (Request* request : done) {
    runners_->traces->Record(
        model_->name, model_->version, request->id,
        {request->submitted, times.start, times.infer_start, times.infer_end, times.end});
    Finish(request);
  }
}

void ModelQueue::Count(const Instance& instance, const RunTimes& times) {
  // One slow run, for example because of another process, must not make all the others go to workers.
  const std::uint64_t ns =
      std::min(Nanoseconds(times.end - times.start), 4 * kShortNs * instance.members.size());
  const std::uint64_t bytes = InputBytes(instance);
  run_bytes_ = run_ns_ == 0 ? bytes : run_bytes_ - run_bytes_ / 8 + bytes / 8;
  run_ns_ = run_ns_ == 0 ? std::max<std::uint64_t>(ns, 1) : run_ns_ - run_ns_ / 8 + ns / 8;
  ModelStatistics& all = statistics_;
  ++all.execution_count;
  all.last_inference_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                         std::chrono::system_clock::now().time_since_epoch())
                                                         .count());
  const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(1, instance.rows));
  all.inference_count += rows;
  BatchStatistics& batch = batches_[rows];
  batch.batch_size = rows;
  Add(&batch.compute_input, times.infer_start - times.start);
  Add(&batch.compute_infer, times.infer_end - times.infer_start);
  Add(&batch.compute_output, times.end - times.infer_end);
  for (const Request* member : instance.members) {
    Add(&all.queue, times.start - member->submitted);
    Add(&all.compute_input, times.infer_start - times.start);
    Add(&all.compute_infer, times.infer_end - times.infer_start);
    Add(&all.compute_output, times.end - times.infer_end);
    Add(member->status                                    ? &all.success
        : member->status.code() == StatusCode::kCancelled ? &all.cancel
                                                          : &all.fail,
        times.end - member->submitted);
  }
}

void ModelQueue::CountCosts(const Instance& instance, std::uint64_t ns) {
  const bool together = instance.members.size() > 1;
  if (!instance.is_timed) return costs_.Pass(instance.kind, instance.rows, together);
  // The requests of a batch that has failed have run one by one.
  for (const Request* member : instance.members) {
    if (!member->status) return;
  }
  costs_.Add(instance.kind, instance.rows, together, ns);
}

void ModelQueue::Cancel(Request* request) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    request->cancelled = true;
    const auto found = std::find(waiting_.begin(), waiting_.end(), request);
    if (found == waiting_.end()) {
      for (const std::unique_ptr<Instance>& instance : instances_) {
        if (instance->members.size() == 1 && instance->members[0] == request) instance->Cancel();
      }
      return;
    }
    waiting_.erase(found);
    request->status = Fail(StatusCode::kCancelled, "the client has cancelled the request");
    const Clock::time_point now = Clock::now();
    sequences_.Leave(request, false, now);
    Add(&statistics_.cancel, now - request->submitted);
  }
  Finish(request);
  // Later steps of its sequence are finished, too.
  if (!model_->state.empty()) Start(false);
}

ModelStatistics ModelQueue::Statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  ModelStatistics copy = statistics_;
  copy.name = model_->name;
  copy.version = model_->version;
  copy.waiting = waiting_.size();
  copy.sequences = sequences_.statistics();
  copy.prefixes = prefixes_.statistics();
  copy.batching = costs_.statistics();
  for (const auto& [size, batch] : batches_) copy.batches.push_back(batch);
  return copy;
}

}  // namespace rewire::serve
