// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/peers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

Peers::~Peers() {
  for (const Watched& each : watched_) {
    if (each.pidfd >= 0) close(each.pidfd);
  }
}

void Peers::Watch(std::vector<Identity> identities, int own_rank) {
  identities_ = std::move(identities);
  const Identity& own = identities_[static_cast<std::size_t>(own_rank)];
  for (int rank = 0; rank < static_cast<int>(identities_.size()); ++rank) {
    Identity& peer = identities_[static_cast<std::size_t>(rank)];
    peer.host[sizeof peer.host - 1] = '\0';
    const bool is_here = own.boot[0] != '\0' && std::memcmp(own.boot, peer.boot, sizeof own.boot) == 0 &&
                         own.pid_namespace == peer.pid_namespace;
    if (rank != own_rank && is_here) watched_.push_back({rank, OpenProcess(peer.pid)});
  }
}

int Peers::FirstEnded() {
  std::vector<pollfd> files;
  for (const Watched& each : watched_) files.push_back({each.pidfd, POLLIN, 0});
  if (files.empty() || poll(files.data(), files.size(), 0) < 0) return -1;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Watched& each = watched_[i];
    const auto pid = static_cast<pid_t>(identities_[static_cast<std::size_t>(each.rank)].pid);
    // Without a descriptor, a process that nobody has waited for still counts as one that runs.
    const bool ended = each.pidfd >= 0 ? files[i].revents != 0 : kill(pid, 0) != 0 && errno == ESRCH;
    if (ended) return each.rank;
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
