// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/unfinished_files.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

namespace rewire {
namespace {

// A signal handler may take no lock and no memory, so the paths are copied to places of a fixed size.
enum Use : int { kFree, kTaken, kNamed };
struct Place {
  std::atomic<int> use{kFree};
  char path[1024];
};
static_assert(std::atomic<int>::is_always_lock_free);
Place places[8];

}  // namespace

void NoteUnfinishedFile(const std::string& path) {
  if (path.size() >= sizeof(Place::path)) return;
  for (Place& place : places) {
    int use = kFree;
    if (!place.use.compare_exchange_strong(use, kTaken)) continue;
    std::memcpy(place.path, path.c_str(), path.size() + 1);
    place.use = kNamed;
    return;
  }
}

void ForgetUnfinishedFile(const std::string& path) {
  for (Place& place : places) {
    if (place.use == kNamed && path == place.path) {
      place.use = kFree;
      return;
    }
  }
}

void RemoveUnfinishedFiles() {
  for (Place& place : places) {
    if (place.use == kNamed) unlink(place.path);
  }
}

}  // namespace rewire
