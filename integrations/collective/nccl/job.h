// SPDX-License-Identifier: Apache-2.0
//
// The job that a process is a rank of, as kernels on devices need it: to find each other before NCCL connects
// them, and to know when to stop waiting.
//
// It is the job of MPI, by the library over MPI. Or the environment describes it, where there is no MPI:
// REWIRE_COLLECTIVE_FILE is a path that all ranks see, REWIRE_COLLECTIVE_RANK this process's number, and
// REWIRE_COLLECTIVE_RANKS how many there are.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "rewire/vm/kernel/status.h"

namespace rewire::collective {

// The ranks that share a communicator: all of them, or two that exchange messages.
struct Group {
  int number = 0;  // the channel; the tag of messages
  int peer = -1;   // the other rank of messages

  bool of_all() const { return peer < 0; }
  friend bool operator<(const Group& a, const Group& b) {
    return a.peer != b.peer ? a.peer < b.peer : a.number < b.number;
  }
};

class Job {
 public:
  virtual ~Job() = default;

  // Returns the process's job, or why there is none. The first call may wait for other ranks. A process
  // without MPI and without that environment is a job of one rank.
  static kernel::Status Get(Job** job);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Gives all ranks of the group the bytes that the first of them has.
  virtual kernel::Status Spread(const Group& group, void* data, std::int64_t bytes) = 0;

  // Any thread may call these. Notice fails, with the reason, if another rank has left a call. FirstEnded
  // returns a rank whose process has ended, or -1. Name is "rank 1 (process 4711 on host node2)".
  virtual kernel::Status Notice() = 0;
  virtual int FirstEnded() = 0;
  virtual std::string Name(int rank) = 0;
  // This rank leaves a call that others wait in, and tells them the reason.
  virtual void Leave(const std::string& reason) = 0;

 protected:
  int rank_ = 0;
  int ranks_ = 1;
  std::chrono::milliseconds timeout_{600'000};
};

// Null, with a success, if there is no such job: the library over MPI is missing, or the environment says
// nothing.
kernel::Status OpenMpiJob(std::unique_ptr<Job>* job);
kernel::Status OpenFileJob(std::unique_ptr<Job>* job);

}  // namespace rewire::collective
