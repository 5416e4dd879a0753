// SPDX-License-Identifier: Apache-2.0
//
// SharedRegions: shared memory of the system that clients have registered, by names of theirs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire::serve {

struct RegionDescription {
  std::string name;
  std::string key;  // of shm_open
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A part of a region. The memory stays mapped as long as `owner`, also when the region is unregistered.
struct RegionPart {
  Span<std::byte> data;
  std::shared_ptr<const void> owner;
};

// Thread-safe.
class SharedRegions {
 public:
  // Maps `bytes` of the object behind `offset`, and keeps it open. Errors: kInvalidArgument if the name is
  // taken, or the object is smaller; kNotFound if there is no such object; kIo.
  Status Register(std::string_view name, std::string_view key, std::uint64_t offset, std::uint64_t bytes);
  // A name that is not registered is no error, as in Triton.
  void Unregister(std::string_view name);
  void UnregisterAll();
  // Errors: kNotFound; kInvalidArgument if the part is not inside the region, or if the object has been made
  // smaller since, so that touching it would end the server.
  Result<RegionPart> Find(std::string_view name, std::uint64_t offset, std::uint64_t bytes) const;
  // All regions, or the one of this name. Errors: kNotFound.
  Result<std::vector<RegionDescription>> List(std::string_view name = {}) const;

 private:
  struct Region;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Region>, std::less<>> regions_;
};

}  // namespace rewire::serve
