// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/shared_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "rewire/base/standalone/descriptor.h"

namespace rewire::serve {

struct SharedRegions::Region {
  RegionDescription description;
  Descriptor file;
  void* map = nullptr;
  std::size_t map_bytes = 0;
  std::byte* data = nullptr;

  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() {
    if (map != nullptr) munmap(map, map_bytes);
  }
  // Whether the object still has all of the region's bytes.
  bool IsWhole() const {
    struct stat facts {};
    return fstat(file.get(), &facts) == 0 && facts.st_size >= 0 &&
           static_cast<std::uint64_t>(facts.st_size) >= description.offset + description.bytes;
  }
};

Status SharedRegions::Register(std::string_view name, std::string_view key, std::uint64_t offset,
                               std::uint64_t bytes) {
  auto region = std::make_shared<Region>();
  region->description = {std::string(name), std::string(key), offset, bytes};
  if (name.empty() || bytes == 0 || offset > std::uint64_t{1} << 62 || bytes > std::uint64_t{1} << 62) {
    return Fail(
        StatusCode::kInvalidArgument,
        "shared memory region '{}': a name and a size above 0 are expected, offset {} and {} bytes are given",
        name, offset, bytes);
  }
  // A key names an object in /dev/shm, and nothing else in the file system.
  const std::string object = region->description.key;
  if (object.empty() || object.find('/', 1) != std::string::npos || object.find('\0') != std::string::npos) {
    return Fail(StatusCode::kInvalidArgument, "shared memory region '{}': '{}' is no name of shared memory",
                name, key);
  }
  region->file = Descriptor(shm_open(object.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!region->file.is_open()) {
    return Fail(errno == ENOENT ? StatusCode::kNotFound : StatusCode::kIo,
                "shared memory region '{}': cannot open '{}': {}", name, key,
                std::generic_category().message(errno));
  }
  if (!region->IsWhole()) {
    return Fail(StatusCode::kInvalidArgument,
                "shared memory region '{}': '{}' is shorter than {} bytes from {} on", name, key, bytes,
                offset);
  }
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  region->map_bytes = bytes + before;
  void* const map = mmap(nullptr, region->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->file.get(),
                         static_cast<off_t>(offset - before));
  if (map == MAP_FAILED) {
    return Fail(StatusCode::kIo, "shared memory region '{}': cannot map '{}': {}", name, key,
                std::generic_category().message(errno));
  }
  region->map = map;
  region->data = static_cast<std::byte*>(map) + before;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!regions_.emplace(std::string(name), std::move(region)).second) {
    return Fail(StatusCode::kInvalidArgument, "shared memory region '{}' is registered already", name);
  }
  return {};
}

void SharedRegions::Unregister(std::string_view name) {
  std::shared_ptr<const Region> last;  // is unmapped after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) return;
  last = std::move(found->second);
  regions_.erase(found);
}

void SharedRegions::UnregisterAll() {
  std::map<std::string, std::shared_ptr<const Region>, std::less<>> all;
  const std::lock_guard<std::mutex> lock(mutex_);
  all.swap(regions_);
}

Result<RegionPart> SharedRegions::Find(std::string_view name, std::uint64_t offset,
                                       std::uint64_t bytes) const {
  std::shared_ptr<const Region> region;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = regions_.find(name);
    if (found != regions_.end()) region = found->second;
  }
  if (region == nullptr) {
    return Fail(StatusCode::kNotFound, "shared memory region '{}' is not registered", name);
  }
  const std::uint64_t size = region->description.bytes;
  if (offset > size || bytes > size - offset) {
    return Fail(StatusCode::kInvalidArgument,
                "shared memory region '{}' has {} bytes, and {} bytes from {} on are asked for", name, size,
                bytes, offset);
  }
  if (!region->IsWhole()) {
    return Fail(StatusCode::kInvalidArgument, "shared memory region '{}': its object has been made shorter",
                name);
  }
  return RegionPart{{region->data + offset, static_cast<std::size_t>(bytes)}, region};
}

Result<std::vector<RegionDescription>> SharedRegions::List(std::string_view name) const {
  std::vector<RegionDescription> list;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, region] : regions_) {
    if (name.empty() || key == name) list.push_back(region->description);
  }
  if (list.empty() && !name.empty()) {
    return Fail(StatusCode::kNotFound, "shared memory region '{}' is not registered", name);
  }
  return list;
}

}  // namespace rewire::serve
