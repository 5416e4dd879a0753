// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/nccl/watch.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "rewire/integrations/collective/nccl/communicator.h"
#include "rewire/integrations/collective/timeout.h"

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};

}  // namespace

Watch& Watch::Of(Job& job) {
  static Watch* const watch = [&job] {
    auto* made = new Watch(job);
    std::thread([made] { made->Run(); }).detach();
    return made;
  }();
  return *watch;
}

Status Watch::LeftStatus() const {
  if (left_.empty()) return Status();
  return RuntimeError(left_, "; collectives of this process work again after a new start of all ranks");
}

Status Watch::Usable() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return LeftStatus();
}

void Watch::Register(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(mutex_);
  communicators_.push_back(communicator);
}

Status Watch::Add(const PendingCall& call) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Status s = LeftStatus(); !s.ok()) return s;
    calls_.push_back(call);
  }
  added_.notify_one();
  return Status();
}

void Watch::ForgetDone() {
  const auto is_done = [](const PendingCall& call) {
    if (!call.communicator->IsDone(call.event)) return false;
    call.communicator->Reuse(call.event);
    return true;
  };
  calls_.erase(std::remove_if(calls_.begin(), calls_.end(), is_done), calls_.end());
}

Status Watch::LookAtCalls(Lookout* lookout) {
  if (Status s = lookout->Lost(); !s.ok()) return s;
  for (const PendingCall& call : calls_) {
    if (Status s = call.communicator->AsyncError(); !s.ok()) return s;
    if (std::chrono::steady_clock::now() - call.begun >= job_.timeout()) return TimedOut(job_.timeout());
  }
  return Status();
}

void Watch::Run() {
  std::optional<Lookout> lookout;  // while calls are pending
  for (;;) {
    Status lost;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (calls_.empty()) lookout.reset();
      added_.wait(lock, [this] { return !calls_.empty(); });
      ForgetDone();
      if (!lookout) lookout.emplace(job_);
      if (!calls_.empty()) lost = LookAtCalls(&*lookout);
    }
    if (!lost.ok()) Leave(lost.message());
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Watch::Leave(const std::string& reason) {
  std::vector<PendingCall> failed;
  std::vector<Communicator*> communicators;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!left_.empty()) return;
    left_ = reason;
    ForgetDone();
    failed.swap(calls_);
    communicators = communicators_;
  }
  job_.Leave(reason);
  for (const PendingCall& call : failed) call.communicator->Fail(call, reason);
  for (Communicator* each : communicators) each->Abort();
}

}  // namespace rewire::collective
