// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: its state, handles, and what each call has in common.
#include "rewire/tests/simulated_cuda/simulator.h"

#include <algorithm>
#include <cstdlib>

#include "rewire/tests/simulated_cuda/faults.h"

namespace rewire::simulated_cuda {
namespace {

std::uint64_t NumberFromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace

ThreadState& CurrentThread() {
  static thread_local ThreadState state;
  return state;
}

Simulator& Simulator::The() {
  static auto* simulator = new Simulator;
  return *simulator;
}

Simulator::Simulator() {
  const std::uint64_t count = NumberFromEnvironment("REWIRE_SIMULATED_CUDA_DEVICES", 2);
  const std::uint64_t bytes = NumberFromEnvironment("REWIRE_SIMULATED_CUDA_MEMORY", std::uint64_t{4} << 30);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 16); ++i) {
    devices.push_back(std::make_unique<Device>(static_cast<int>(i), bytes));
    Device& device = *devices.back();
    device.context.device = &device;
    device.legacy.device = &device;
    device.legacy.timeline = NewTimeline();
  }
  for (const auto& device : devices) WatchHostAccess(device->memory);
}

void Simulator::Violation(std::string text) {
  ++since.violations;
  violations.push_back(std::move(text));
}

CUresult Simulator::Injected(std::list<Failure>* failures, std::string_view what) {
  CUresult code = CUDA_SUCCESS;
  for (auto failure = failures->begin(); failure != failures->end();) {
    const bool meant = failure->function == what || failure->function == "*";
    if (meant && --failure->left == 0) {
      code = failure->code;
      failure = failures->erase(failure);
    } else {
      ++failure;
    }
  }
  return code;
}

Stream* Simulator::FindStream(CUstream handle, Device* device) {
  if (handle == nullptr || handle == LegacyStream()) return device == nullptr ? nullptr : &device->legacy;
  if (handle == PerThreadStream()) {
    if (device == nullptr) return nullptr;
    Stream& stream = device->per_thread[std::this_thread::get_id()];
    if (stream.timeline == nullptr) {
      stream.device = device;
      stream.timeline = NewTimeline();
    }
    return &stream;
  }
  const auto found = streams.find(handle);
  return found == streams.end() ? nullptr : found->second.get();
}

Device* Simulator::DeviceOf(std::uint64_t address) {
  for (const auto& device : devices)
    if (device->memory.Has(address)) return device.get();
  return nullptr;
}

bool Simulator::IsPinned(std::uint64_t address, std::size_t bytes) const {
  auto after = host_ranges.upper_bound(address);
  if (after == host_ranges.begin()) return false;
  --after;
  const std::uint64_t offset = address - after->first;
  return offset <= after->second.bytes && bytes <= after->second.bytes - offset;
}

bool Simulator::IsModuleGlobal(std::uint64_t address) const {
  auto after = module_globals.upper_bound(address);
  if (after == module_globals.begin()) return false;
  --after;
  return address - after->first < after->second;
}

void* Simulator::Touchable(std::uint64_t address) {
  Device* device = DeviceOf(address);
  return device != nullptr ? device->memory.Touchable(address) : reinterpret_cast<void*>(address);
}

void Simulator::Reset() {
  costs = Costs();
  since = Counters();
  calls.clear();
  log_on = false;
  log.clear();
  violations.clear();
  call_failures.clear();
  work_failures.clear();
  for (const auto& device : devices) {
    device->lost = CUDA_SUCCESS;
    device->major = 9;
    device->minor = 0;
    device->memory.set_total(~std::size_t{0});
    std::fill(std::begin(device->busy_until), std::end(device->busy_until), 0);
  }
  for (const auto& timeline : timelines_) timeline->end = 0;
  host_time_ = 0;
}

Call::Call(std::string_view function, Kind kind)
    : simulator_(Simulator::The()), lock_(simulator_.mutex), kind_(kind) {
  const auto counted = simulator_.calls.find(function);
  if (counted != simulator_.calls.end())
    ++counted->second;
  else
    simulator_.calls.emplace(function, 1);
  ThreadState& thread = CurrentThread();
  const CUcontext current = thread.contexts.top();
  if (current != nullptr) device_ = reinterpret_cast<Context*>(current)->device;
  result_ = Simulator::Injected(&simulator_.call_failures, function);
  if (result_ != CUDA_SUCCESS) return;
  if (thread.in_host_function)
    result_ = CUDA_ERROR_NOT_PERMITTED;
  else if (!simulator_.initialized && function != "cuInit")
    result_ = CUDA_ERROR_NOT_INITIALIZED;
  else if (kind == kUsual && device_ == nullptr)
    result_ = CUDA_ERROR_INVALID_CONTEXT;
  else if (kind == kUsual && device_->retained == 0)
    result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  else if (kind != kWithoutContext && device_ != nullptr)
    result_ = device_->lost;
}

bool Call::ForbiddenByCapture() const {
  bool forbidden = false;
  for (Capture* capture : simulator_.captures) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    if (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && capture->thread != std::this_thread::get_id())
      continue;
    capture->invalid = true;
    forbidden = true;
  }
  return forbidden;
}

}  // namespace rewire::simulated_cuda
