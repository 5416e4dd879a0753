// SPDX-License-Identifier: Apache-2.0
//
// The ranks of this process's MPI job, as the kernels of this folder share them.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "rewire/integrations/collective/peers.h"
#include "rewire/kernels/contract/collective.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::collective {

// One per process. The first use initializes MPI, unless the host has; it is then finalized when the process
// ends. Communicators are copies of MPI_COMM_WORLD, so that no message of the host's is taken for one of
// ours.
//
// Threads: MPI is asked for MPI_THREAD_MULTIPLE. Where a host has initialized it with MPI_THREAD_SERIALIZED,
// calls from here exclude each other, and the host must keep its own apart from them. With less, only the
// thread that has initialized MPI may call.
class World {
 public:
  // Messages go by one of two communicators. Those of collectives have the channel as their tag.
  enum class Lane { kCollectives, kMessages };

  // Returns the process's world, or why there is none. The first call waits until all ranks have called.
  static kernel::Status Get(World** world);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool is_one_machine() const { return one_machine_; }  // all ranks run on one
  MPI_Comm communicator(Lane lane) const { return lane == Lane::kCollectives ? collectives_ : messages_; }
  std::string Name(int rank) const { return peers_.Name(rank); }
  // False while the process ends: the wait then is no kernel's.
  bool is_running() const { return !closing_.load(std::memory_order_relaxed); }
  // How long a call waits for ranks that run (timeout.h).
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Whether the calling thread may call MPI.
  bool MayBeAsked() const;
  // Excludes calls of MPI by other threads where MPI asks for it.
  std::unique_lock<std::mutex> Lock() {
    return multiple_ ? std::unique_lock<std::mutex>() : std::unique_lock<std::mutex>(mpi_);
  }

  // The rank of a process on this machine that has ended, or -1.
  int FirstEnded();
  // Fails if another rank has left a call, with its reason.
  kernel::Status Notice();
  // This rank leaves a call that it has begun. Messages under way belong to no call then, so all later calls
  // of this process fail with the reason, and the other ranks are told.
  void Leave(const std::string& reason);

  // The text of an error of MPI's.
  static std::string Text(int code);

 private:
  friend class ChannelUse;

  World() = default;
  kernel::Status Open();
  kernel::Status Connect();
  kernel::Status CopyWorld(MPI_Comm* result);
  kernel::Status Usable();
  void Close();

  MPI_Comm collectives_ = MPI_COMM_NULL;
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm notices_ = MPI_COMM_NULL;
  MPI_Comm unfinished_ = MPI_COMM_NULL;  // a copy that is being made
  int rank_ = 0;
  int ranks_ = 1;
  bool ours_ = false;  // this library has initialized MPI
  bool multiple_ = false;
  bool one_thread_ = false;
  bool one_machine_ = true;
  std::chrono::milliseconds timeout_{600'000};
  std::mutex mpi_;
  std::array<std::atomic<bool>, contract::kMostChannel + 1> channels_{};  // whether a call uses each

  std::mutex mutex_;  // of what follows
  Peers peers_;
  std::string left_;    // why this process has left; empty: it has not
  std::string notice_;  // what the others are told; it stays, since MPI reads it
  std::atomic<bool> is_left_{false};
  std::atomic<bool> closing_{false};
};

// The use of a channel by one call: two at once would mix their messages.
class ChannelUse {
 public:
  ChannelUse(World& world, std::int64_t channel);
  ~ChannelUse();
  ChannelUse(const ChannelUse&) = delete;
  ChannelUse& operator=(const ChannelUse&) = delete;

  kernel::Status status() const;

 private:
  std::atomic<bool>& used_;
  std::int64_t channel_;
  bool taken_;
};

}  // namespace rewire::collective
