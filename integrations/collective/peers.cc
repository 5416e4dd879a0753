// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/peers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rewire::collective {
namespace {

// Debian 12's glibc has no function of that name.
int OpenProcess(std::int64_t pid) {
#if defined(SYS_pidfd_open)
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
#else
  (void)pid;
  return -1;
#endif
}

void ReadBootId(char* text, std::size_t size) {
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t bytes = read(file, text, size - 1);
  text[bytes < 0 ? 0 : bytes] = '\0';
  close(file);
}

bool IsSameMachine(const Identity& a, const Identity& b) {
  return a.boot[0] != '\0' && std::memcmp(a.boot, b.boot, sizeof a.boot) == 0;
}

}  // namespace

Identity OwnIdentity() {
  Identity own;
  gethostname(own.host, sizeof own.host - 1);
  ReadBootId(own.boot, sizeof own.boot);
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) == 0) own.pid_namespace = status.st_ino;
  own.pid = getpid();
  return own;
}

bool AreOnOneMachine(const std::vector<Identity>& identities) {
  return std::all_of(identities.begin(), identities.end(),
                     [&](const Identity& each) { return IsSameMachine(each, identities[0]); });
}

Peers::~Peers() {
  for (const pollfd& each : files_) {
    if (each.fd >= 0) close(each.fd);
  }
}

void Peers::Watch(std::vector<Identity> identities, int own_rank) {
  identities_ = std::move(identities);
  const Identity& own = identities_[static_cast<std::size_t>(own_rank)];
  for (int rank = 0; rank < static_cast<int>(identities_.size()); ++rank) {
    Identity& peer = identities_[static_cast<std::size_t>(rank)];
    peer.host[sizeof peer.host - 1] = '\0';
    const bool is_here = IsSameMachine(own, peer) && own.pid_namespace == peer.pid_namespace;
    if (rank == own_rank || !is_here) continue;
    watched_.push_back(rank);
    files_.push_back({OpenProcess(peer.pid), POLLIN, 0});
  }
}

int Peers::FirstEnded() {
  if (files_.empty() || poll(files_.data(), files_.size(), 0) < 0) return -1;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const int rank = watched_[i];
    const auto pid = static_cast<pid_t>(identities_[static_cast<std::size_t>(rank)].pid);
    // Without a descriptor, a process that nobody has waited for still counts as one that runs.
    const bool ended = files_[i].fd >= 0 ? files_[i].revents != 0 : kill(pid, 0) != 0 && errno == ESRCH;
    if (ended) return rank;
  }
  return -1;
}

std::string Peers::Name(int rank) const {
  if (identities_.empty()) return "rank " + std::to_string(rank);
  const Identity& peer = identities_[static_cast<std::size_t>(rank)];
  return "rank " + std::to_string(rank) + " (process " + std::to_string(peer.pid) + " on host " + peer.host +
         ")";
}

}  // namespace rewire::collective
