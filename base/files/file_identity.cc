// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/files/file_identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace rewire {
namespace {

constexpr std::int64_t kSecond = 1000000000;  // nanoseconds
constexpr std::int64_t kSettles = 2 * kSecond;

std::int64_t Nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

}  // namespace

std::int64_t WallTime() {
  struct timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode)) {
    errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    return std::nullopt;
  }
  FileIdentity identity;
  identity.device = info.st_dev;
  identity.inode = info.st_ino;
  identity.size = static_cast<std::uint64_t>(info.st_size);
  identity.modified = Nanoseconds(info.st_mtim);
  identity.changed = std::max(identity.modified, Nanoseconds(info.st_ctim));
  identity.settled = identity.changed < WallTime() - kSettles;
  return identity;
}

}  // namespace rewire
