// SPDX-License-Identifier: Apache-2.0
//
// Watches the calls that devices have not done yet, on a thread of its own.
//
// NCCL's work on a device waits for that of other ranks, and nothing ends it if one has died. So this looks
// for lost ranks, for errors that NCCL has found and for the timeout. Then it tells the streams of the calls
// that they have failed, and only after that lets NCCL end the work: whoever waits for a stream learns it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/integrations/collective/nccl/lookout.h"

namespace rewire::collective {

class Communicator;

// A call that a device has been given.
struct PendingCall {
  Communicator* communicator = nullptr;
  const char* name = nullptr;  // of the kernel
  void* event = nullptr;       // when it is done
  void* stream = nullptr;      // the run's, which waits for the event
  std::chrono::steady_clock::time_point begun;
};

// There is one, for the process's job. It is never destroyed, nor does its thread end.
class Watch {
 public:
  static Watch& Of(Job& job);

  // Fails if this process has left the job, with the reason.
  kernel::Status Usable();
  // Leave ends the communicator's work.
  void Register(Communicator* communicator);
  // Fails as Usable does. The call's work may have been ended then.
  kernel::Status Add(const PendingCall& call);
  // This rank leaves the job: all calls that are pending fail, and all later ones.
  void Leave(const std::string& reason);

 private:
  explicit Watch(Job& job) : job_(job) {}
  kernel::Status LeftStatus() const;
  void Run();
  // Forgets the calls that are done.
  void ForgetDone();
  // Why the calls that are pending must end, if they must.
  kernel::Status LookAtCalls(Lookout* lookout);

  Job& job_;
  std::mutex mutex_;  // of what follows
  std::condition_variable added_;
  std::vector<PendingCall> calls_;
  std::vector<Communicator*> communicators_;
  std::string left_;  // why this process has left; empty: it has not
};

}  // namespace rewire::collective
