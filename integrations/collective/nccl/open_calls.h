// SPDX-License-Identifier: Apache-2.0
//
// Calls that have begun and that their run's stream has not waited for.
//
// Their work uses memory of the run, on another stream than the run's. Memory of a run is anyone's when the
// run's stream has come to its end. So the end of each call is attached to that stream (vm/kernel/
// stream_work.h), and a program that never waits ends later, but does no harm.
#pragma once

#include <cstddef>
#include <vector>

#include "rewire/integrations/collective/nccl/device_stream.h"

namespace rewire::collective {

// One thread at a time. Events are kept to be used again.
class OpenCalls {
 public:
  // The work that the stream `work` has so far is a call of `run`, whose result will lie in `memory`. An
  // earlier call with that memory is forgotten, since this one is done later.
  kernel::Status Add(const DeviceStream& run, void* work, const void* memory);
  // Later work of `run` comes after the call with this memory, if there is one.
  kernel::Status Join(const DeviceStream& run, const void* memory);

 private:
  // With so many, a call is waited for where it begins.
  static constexpr std::size_t kMostCalls = 64;

  struct OpenCall {
    const void* memory = nullptr;
    void* stream = nullptr;  // the run's
    void* event = nullptr;   // when the call is done
  };

  kernel::Status NewEvent(const DeviceStream& run, void** event);
  void Forget(const DeviceStream& run, const OpenCall& call);
  void ForgetDone(const DeviceStream& run);

  std::vector<OpenCall> calls_;
  std::vector<void*> free_events_;
};

}  // namespace rewire::collective
