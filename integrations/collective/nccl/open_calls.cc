// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/nccl/open_calls.h"

#include <algorithm>

namespace rewire::collective {

using kernel::Status;

Status OpenCalls::Add(const DeviceStream& run, void* work, const void* memory) {
  const RewireDeviceApi& api = *run.api;
  const auto same = std::find_if(calls_.begin(), calls_.end(),
                                 [memory](const OpenCall& call) { return call.memory == memory; });
  if (same != calls_.end()) {
    Forget(run, *same);
    calls_.erase(same);
  }
  if (calls_.size() == kMostCalls) ForgetDone(run);
  void* event = nullptr;
  if (Status s = NewEvent(run, &event); !s.ok()) return s;
  Status added = run.Check(api.record_event(api.context, run.device, event, work));
  int code = REWIRE_DEVICE_UNSUPPORTED;
  if (added.ok() && calls_.size() < kMostCalls)
    code = RewireStreamWorkOf(run.api)->attach_event(api.context, run.device, run.stream, event);
  if (code == REWIRE_DEVICE_OK) {
    calls_.push_back({memory, run.stream, event});
    return added;
  }
  if (added.ok()) added = run.Check(api.wait_event(api.context, run.device, run.stream, event));
  free_events_.push_back(event);
  return added;
}

Status OpenCalls::Join(const DeviceStream& run, const void* memory) {
  const auto found = std::find_if(calls_.begin(), calls_.end(),
                                  [memory](const OpenCall& call) { return call.memory == memory; });
  if (found == calls_.end()) return Status();
  Status joined = run.Check(run.api->wait_event(run.api->context, run.device, run.stream, found->event));
  if (!joined.ok()) return joined;
  Forget(run, *found);
  calls_.erase(found);
  return joined;
}

Status OpenCalls::NewEvent(const DeviceStream& run, void** event) {
  if (free_events_.empty()) return run.Check(run.api->make_event(run.api->context, run.device, event));
  *event = free_events_.back();
  free_events_.pop_back();
  return Status();
}

void OpenCalls::Forget(const DeviceStream& run, const OpenCall& call) {
  (void)RewireStreamWorkOf(run.api)->detach_event(run.api->context, run.device, call.stream, call.event);
  free_events_.push_back(call.event);
}

void OpenCalls::ForgetDone(const DeviceStream& run) {
  const auto is_done = [&](const OpenCall& call) {
    std::int32_t done = 0;
    const int code = run.api->query_event(run.api->context, run.device, call.event, &done);
    if (code != REWIRE_DEVICE_OK || done == 0) return false;
    Forget(run, call);
    return true;
  };
  calls_.erase(std::remove_if(calls_.begin(), calls_.end(), is_done), calls_.end());
}

}  // namespace rewire::collective
