// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: what tests do to it.
#include "rewire/tests/simulated_cuda/control.h"

#include <algorithm>
#include <cstring>

#include "rewire/tests/simulated_cuda/simulator.h"

namespace rewire::simulated_cuda {
namespace {

Device* DeviceNumber(Simulator& simulator, int device) {
  const auto index = static_cast<std::size_t>(device);
  return device >= 0 && index < simulator.devices.size() ? simulator.devices[index].get() : nullptr;
}

}  // namespace

#define REWIRE_CONTROL_FUNCTION(name) rewire_simulated_cuda_##name

#pragma GCC visibility push(default)
extern "C" {

void REWIRE_CONTROL_FUNCTION(Reset)() {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  simulator.Reset();
}

void REWIRE_CONTROL_FUNCTION(FailCall)(const char* function, std::uint64_t k, int code) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  simulator.call_failures.push_back({function, std::max<std::uint64_t>(k, 1), static_cast<CUresult>(code)});
}

void REWIRE_CONTROL_FUNCTION(FailWork)(char kind, std::uint64_t k, int code) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  simulator.work_failures.push_back(
      {std::string(1, kind), std::max<std::uint64_t>(k, 1), static_cast<CUresult>(code)});
}

void REWIRE_CONTROL_FUNCTION(LoseDevice)(int device, int code) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  if (Device* lost = DeviceNumber(simulator, device)) lost->lost = static_cast<CUresult>(code);
}

void REWIRE_CONTROL_FUNCTION(SetCosts)(std::uint64_t launch, std::uint64_t copy, double copy_per_byte) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  simulator.costs.launch = launch;
  simulator.costs.copy = copy;
  simulator.costs.copy_per_byte = copy_per_byte;
}

void REWIRE_CONTROL_FUNCTION(SetRealTime)(double factor) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  simulator.costs.real_time = factor;
}

void REWIRE_CONTROL_FUNCTION(SetDelays)(std::uint64_t seed, std::uint64_t most) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  simulator.costs.delay_seed = seed;
  simulator.costs.most_delay = most;
}

void REWIRE_CONTROL_FUNCTION(SetComputeCapability)(int device, int major, int minor) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  Device* changed = DeviceNumber(simulator, device);
  if (changed == nullptr) return;
  changed->major = major;
  changed->minor = minor;
}

void REWIRE_CONTROL_FUNCTION(SetTotalMemory)(int device, std::uint64_t bytes) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  if (Device* changed = DeviceNumber(simulator, device)) changed->memory.set_total(bytes);
}

void REWIRE_CONTROL_FUNCTION(SetLog)(int on) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  simulator.log_on = on != 0;
}

void REWIRE_CONTROL_FUNCTION(GetCounters)(Counters* counters) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  *counters = simulator.since;
  for (const auto& device : simulator.devices) {
    counters->device_allocations += device->memory.blocks().size();
    counters->device_bytes += device->memory.live_bytes();
    counters->pool_reserved_bytes += device->memory.reserved();
    counters->retained_contexts += device->retained;
  }
  for (const auto& [address, range] : simulator.host_ranges) {
    if (range.allocated) {
      ++counters->pinned_allocations;
      counters->pinned_bytes += range.bytes;
    } else {
      ++counters->registered_ranges;
    }
  }
  counters->streams = simulator.streams.size();
  counters->events = simulator.events.size();
  counters->modules = simulator.modules.size();
  counters->graphs = simulator.graphs.size();
  counters->graph_execs = simulator.graph_execs.size();
}

std::uint64_t REWIRE_CONTROL_FUNCTION(CountCalls)(const char* function) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  const auto found = simulator.calls.find(std::string_view(function));
  return found == simulator.calls.end() ? 0 : found->second;
}

std::uint64_t REWIRE_CONTROL_FUNCTION(LogSize)() {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  return simulator.log.size();
}

int REWIRE_CONTROL_FUNCTION(GetLog)(std::uint64_t at, LogEntry* entry) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  if (at >= simulator.log.size()) return 0;
  *entry = simulator.log[at];
  return 1;
}

std::uint64_t REWIRE_CONTROL_FUNCTION(VirtualNow)() {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  return simulator.host_time();
}

const char* REWIRE_CONTROL_FUNCTION(Violation)(std::uint64_t at) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  return at < simulator.violations.size() ? simulator.violations[at].c_str() : nullptr;
}

int REWIRE_CONTROL_FUNCTION(Peek)(std::uint64_t address, void* to, std::size_t bytes) {
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  Device* device = simulator.DeviceOf(address);
  if (device == nullptr) return 0;
  const auto block = device->memory.Find(address);
  if (block == device->memory.blocks().end() || bytes > block->first + block->second.bytes - address)
    return 0;
  std::memcpy(to, device->memory.Touchable(address), bytes);
  return 1;
}

}  // extern "C"
#pragma GCC visibility pop

}  // namespace rewire::simulated_cuda
