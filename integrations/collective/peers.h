// SPDX-License-Identifier: Apache-2.0
//
// The processes of a job, and whether those on this machine still run.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rewire::collective {

// A rank tells the others this about its process. The struct is plain bytes and is sent as it is.
struct Identity {
  char host[64] = {};
  char boot[40] = {};               // the kernel's boot id: equal on one machine, also in containers
  std::uint64_t pid_namespace = 0;  // process ids mean the same within one namespace
  std::int64_t pid = 0;
};

Identity OwnIdentity();
bool AreOnOneMachine(const std::vector<Identity>& identities);

// Watches the processes of all other ranks that have this machine and this namespace of process ids. Not
// thread-safe, but for Name.
class Peers {
 public:
  Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  ~Peers();

  // `identities` has one element for each rank.
  void Watch(std::vector<Identity> identities, int own_rank);

  // Returns the first rank whose process has ended, or -1. A system call, or one for each rank where Linux is
  // older than 5.3.
  int FirstEnded();

  // "rank 1 (process 4711 on host node2)"; "rank 1" before Watch.
  std::string Name(int rank) const;

 private:
  std::vector<Identity> identities_;
  std::vector<int> watched_;   // ranks
  std::vector<pollfd> files_;  // of their processes; a descriptor of -1 where there is none
};

}  // namespace rewire::collective
