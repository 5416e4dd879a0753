// SPDX-License-Identifier: Apache-2.0
//
// A communicator of NCCL, the stream on which its work runs, and the order of that work with the runs'.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rewire/integrations/collective/nccl/device_stream.h"
#include "rewire/integrations/collective/nccl/job.h"
#include "rewire/integrations/collective/nccl/nccl.h"
#include "rewire/integrations/collective/nccl/open_calls.h"
#include "rewire/integrations/collective/nccl/watch.h"
#include "rewire/kernels/cuda_libraries/context.h"

namespace rewire::collective {

// Any thread may call its functions. It is never destroyed.
class Communicator {
 public:
  // Gives the process's communicator of these ranks. A process has one device for it.
  static kernel::Status Get(Job& job, const Group& group, const DeviceStream& run, Communicator** found);

  // Calls body(communicator), which gives work to stream(). That work comes after what the run's stream has
  // so far, and the run's stream goes on when it is done. The host does not wait. `name` is the kernel's. The
  // first call connects the ranks, and waits until all of them have come. If the body fails, this process has
  // left the job, since the other ranks wait for it.
  template <typename Body>
  kernel::Status Do(const DeviceStream& run, const char* name, const Body& body) {
    return DoBegin(run, name, nullptr, body);
  }
  // The same, but the run's stream goes on at once if `memory` is not null. It waits where Join is called
  // with `memory`, which the work writes.
  template <typename Body>
  kernel::Status DoBegin(const DeviceStream& run, const char* name, const void* memory, const Body& body) {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return InUse();
    if (kernel::Status s = Begin(run); !s.ok()) return s;
    kernel::Status given = WaitForRun(run);
    if (given.ok()) given = body(*this);
    return End(run, name, memory, std::move(given));
  }
  // The run's later work comes after the call that has begun with this memory, if there is one.
  kernel::Status Join(const DeviceStream& run, const void* memory);

  // For a body. Calls give(nccl, comm), which returns NCCL's result, and waits until NCCL has put the work on
  // the stream.
  template <typename Give>
  kernel::Status Call(const char* function, const Give& give) {
    const kernel::cuda_libraries::EnteredContext context(run_.device.device_id);
    int result = kNcclSuccess;
    {
      const std::lock_guard<std::mutex> lock(comm_mutex_);
      if (comm_ != nullptr) result = give(nccl_, comm_);
    }
    return Finish(function, result);
  }
  void* stream() const { return stream_; }

  // For Watch. IsDone also holds for an event that the driver can tell nothing of.
  bool IsDone(void* event) const;
  void Reuse(void* event);
  // Fails if NCCL has found an error.
  kernel::Status AsyncError();
  void Fail(const PendingCall& call, const std::string& reason) const;
  // Ends all of NCCL's work.
  void Abort();

 private:
  Communicator(Job& job, const Group& group, const DeviceStream& run, const NcclFunctions& nccl)
      : job_(job), watch_(Watch::Of(job)), group_(group), run_(run), nccl_(nccl) {}
  kernel::Status InUse() const;
  kernel::Status Connect();
  kernel::Status Open();
  kernel::Status Begin(const DeviceStream& run);
  // Lets the stream's work begin when the run has come to it.
  kernel::Status WaitForRun(const DeviceStream& run);
  kernel::Status End(const DeviceStream& run, const char* name, const void* memory, kernel::Status given);
  // Waits while `result`, and then NCCL's state, is ncclInProgress. Fails if NCCL's work has been ended.
  kernel::Status Finish(const char* function, int result);
  kernel::Status NewEvent(void** event);
  std::string GroupText() const;

  Job& job_;
  Watch& watch_;
  const Group group_;
  const DeviceStream run_;  // of the first call, for its device
  const NcclFunctions& nccl_;

  std::mutex mutex_;  // of a call, and of what follows
  void* stream_ = nullptr;
  void* before_ = nullptr;       // an event: what the run's stream had when the last call began
  void* last_event_ = nullptr;   // when the last call is done
  void* last_stream_ = nullptr;  // the stream of its run
  OpenCalls open_calls_;

  std::mutex comm_mutex_;
  void* comm_ = nullptr;  // null: its work was ended

  std::mutex events_mutex_;
  std::vector<void*> free_events_;
};

}  // namespace rewire::collective
