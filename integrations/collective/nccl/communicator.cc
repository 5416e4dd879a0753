// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/nccl/communicator.h"

#include <map>
#include <memory>
#include <thread>

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;
using kernel::cuda_libraries::EnteredContext;

namespace {

// NCCL waits for other ranks in steps of this.
constexpr std::chrono::microseconds kBetweenLooks{50};

}  // namespace

Status Communicator::Get(Job& job, const Group& group, const DeviceStream& run, Communicator** found) {
  struct Table {
    std::mutex mutex;
    std::map<Group, std::unique_ptr<Communicator>> all;
  };
  static auto* const table = new Table();

  const NcclFunctions* nccl = nullptr;
  if (Status s = OpenNccl(&nccl); !s.ok()) return s;
  const std::lock_guard<std::mutex> lock(table->mutex);
  std::unique_ptr<Communicator>& entry = table->all[group];
  if (entry == nullptr) entry.reset(new Communicator(job, group, run, *nccl));
  *found = entry.get();
  if (IsSameDevice(entry->run_.device, run.device)) return Status();
  return kernel::ValueError("a tensor is on device ", run.device.device_id, ", expected device ",
                            entry->run_.device.device_id,
                            ", by which this process has exchanged tensors with ", entry->GroupText());
}

Status Communicator::InUse() const {
  return RuntimeError(group_.of_all() ? "channel " : "tag ", group_.number,
                      " is in use by another run of this process; programs that run at once need channels of "
                      "their own");
}

std::string Communicator::GroupText() const {
  if (!group_.of_all()) return job_.Name(group_.peer) + " by tag " + std::to_string(group_.number);
  return "all ranks on channel " + std::to_string(group_.number);
}

Status Communicator::Connect() {
  Status opened = Open();
  if (opened.ok()) return opened;
  watch_.Leave(opened.kind() == nullptr ? "the ranks could not be connected" : opened.message());
  if (opened.kind() == nullptr) return opened;
  return std::move(opened).WithContext("NCCL could not connect " + GroupText());
}

Status Communicator::Open() {
  const bool is_pair = !group_.of_all();
  const int ranks = is_pair ? 2 : job_.ranks();
  const int rank = is_pair ? (job_.rank() < group_.peer ? 0 : 1) : job_.rank();
  const EnteredContext context(run_.device.device_id);
  if (!context) return RuntimeError("CUDA's driver gives no context of the device ", run_.device.device_id);
  NcclId id{};
  if (rank == 0) {
    if (const int result = nccl_.ncclGetUniqueId(&id); result != kNcclSuccess)
      return NcclFailure(nccl_, "ncclGetUniqueId", result, nullptr);
  }
  if (Status s = job_.Spread(group_, &id, sizeof id); !s.ok()) return s;
  NcclConfig config;
  int result = kNcclSuccess;
  {
    const std::lock_guard<std::mutex> lock(comm_mutex_);
    result = nccl_.ncclCommInitRankConfig(&comm_, ranks, id, rank, &config);
  }
  watch_.Register(this);
  if (Status s = Finish("ncclCommInitRankConfig", result); !s.ok()) return s;
  const RewireDeviceApi& api = *run_.api;
  if (Status s = run_.Check(api.make_event(api.context, run_.device, &before_)); !s.ok()) return s;
  return run_.Check(api.make_stream(api.context, run_.device, &stream_));
}

Status Communicator::Finish(const char* function, int result) {
  Lookout lookout(job_);
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(comm_mutex_);
      int state = kNcclSuccess;
      if (comm_ != nullptr && result == kNcclInProgress) {
        const int asked = nccl_.ncclCommGetAsyncError(comm_, &state);
        result = asked != kNcclSuccess ? asked : state;
      }
      if (comm_ == nullptr) break;
      if (result == kNcclSuccess) return Status();
      if (result != kNcclInProgress) return NcclFailure(nccl_, function, result, comm_);
    }
    if (Status s = lookout.Look(); !s.ok()) return s;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return watch_.Usable();
}

Status Communicator::NewEvent(void** event) {
  const std::lock_guard<std::mutex> lock(events_mutex_);
  if (free_events_.empty()) return run_.Check(run_.api->make_event(run_.api->context, run_.device, event));
  *event = free_events_.back();
  free_events_.pop_back();
  return Status();
}

void Communicator::Reuse(void* event) {
  const std::lock_guard<std::mutex> lock(events_mutex_);
  free_events_.push_back(event);
}

Status Communicator::Begin(const DeviceStream& run) {
  if (Status s = watch_.Usable(); !s.ok()) return s;
  // This call could still end well, by chance, with what a rank sent before it left.
  if (Status s = job_.Notice(); !s.ok()) {
    watch_.Leave(s.message());
    return s;
  }
  if (stream_ == nullptr) {
    if (Status s = Connect(); !s.ok()) return s;
  }
  if (last_event_ != nullptr && last_stream_ != run.stream && !IsDone(last_event_)) return InUse();
  return Status();
}

Status Communicator::WaitForRun(const DeviceStream& run) {
  const RewireDeviceApi& api = *run.api;
  if (Status s = run.Check(api.record_event(api.context, run.device, before_, run.stream)); !s.ok()) return s;
  return run.Check(api.wait_event(api.context, run.device, stream_, before_));
}

Status Communicator::End(const DeviceStream& run, const char* name, const void* memory, Status given) {
  const RewireDeviceApi& api = *run.api;
  void* event = nullptr;
  if (given.ok()) given = NewEvent(&event);
  if (given.ok()) given = run.Check(api.record_event(api.context, run.device, event, stream_));
  if (given.ok()) {
    last_event_ = event;
    last_stream_ = run.stream;
    given = watch_.Add({this, name, event, run.stream, std::chrono::steady_clock::now()});
  }
  if (given.ok()) {
    given = memory != nullptr ? open_calls_.Add(run, stream_, memory)
                              : run.Check(api.wait_event(api.context, run.device, run.stream, event));
  }
  if (given.ok()) return given;
  watch_.Leave(given.kind() == nullptr ? "the rank has no memory for the call" : given.message());
  // Work that was given before the failure uses the call's memory.
  (void)api.synchronize(api.context, run.device, stream_);
  return given;
}

Status Communicator::Join(const DeviceStream& run, const void* memory) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  return lock.owns_lock() ? open_calls_.Join(run, memory) : InUse();
}

bool Communicator::IsDone(void* event) const {
  std::int32_t done = 1;
  return run_.api->query_event(run_.api->context, run_.device, event, &done) != REWIRE_DEVICE_OK || done != 0;
}

Status Communicator::AsyncError() {
  const std::lock_guard<std::mutex> lock(comm_mutex_);
  int state = kNcclSuccess;
  if (comm_ == nullptr || nccl_.ncclCommGetAsyncError(comm_, &state) != kNcclSuccess) return Status();
  if (state == kNcclSuccess || state == kNcclInProgress) return Status();
  return NcclFailure(nccl_, "an exchange of NCCL", state, comm_);
}

void Communicator::Fail(const PendingCall& call, const std::string& reason) const {
  const std::string words = std::string(call.name) + ": " + reason;
  const RewireStreamWorkApi* const failures = RewireStreamWorkOf(run_.api);
  (void)failures->fail_stream(run_.api->context, run_.device, call.stream, words.c_str());
}

void Communicator::Abort() {
  const EnteredContext context(run_.device.device_id);
  const std::lock_guard<std::mutex> lock(comm_mutex_);
  if (comm_ != nullptr) (void)nccl_.ncclCommAbort(comm_);
  comm_ = nullptr;
}

}  // namespace rewire::collective
