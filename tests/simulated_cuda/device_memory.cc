// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/simulated_cuda/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>

namespace rewire::simulated_cuda {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGuard = 64;
constexpr std::byte kGuardByte{0xfd};
constexpr std::byte kFreshByte{0xcd};  // what memory holds that nobody has written
constexpr std::byte kFreedByte{0xdd};
constexpr std::size_t kMostPoisoned = std::size_t{1} << 20;
constexpr std::size_t kMostAccesses = 16;

void Poison(std::byte* at, std::size_t bytes, std::byte value) {
  std::memset(at, static_cast<int>(value), std::min(bytes, kMostPoisoned));
}

}  // namespace

DeviceMemory::DeviceMemory(int device, std::size_t capacity)
    : device_(device), capacity_(capacity), limit_(capacity) {
  file_ = memfd_create("simulated CUDA device memory", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(capacity)) != 0)
    throw std::runtime_error("simulated CUDA: no file for device memory");
  void* seen = mmap(nullptr, capacity, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  void* touchable = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (seen == MAP_FAILED || touchable == MAP_FAILED)
    throw std::runtime_error("simulated CUDA: no address range for device memory");
  seen_ = reinterpret_cast<std::uint64_t>(seen);
  touchable_ = static_cast<std::byte*>(touchable);
  free_[seen_] = capacity;
}

std::uint64_t DeviceMemory::Seen(const void* pointer) const {
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) - touchable_);
  return offset < capacity_ ? seen_ + offset : 0;
}

std::uint64_t DeviceMemory::TakeFresh(std::size_t extent) {
  if (taken_ + extent > limit_) return 0;
  auto fit =
      std::find_if(free_.begin(), free_.end(), [extent](const auto& row) { return row.second >= extent; });
  if (fit == free_.end()) return 0;
  const auto [address, room] = *fit;
  free_.erase(fit);
  if (room > extent) free_[address + extent] = room - extent;
  taken_ += extent;
  return address;
}

void DeviceMemory::Release(std::uint64_t address, std::size_t extent) {
  taken_ -= extent;
  // Whole pages go back to the machine.
  const std::size_t page = 4096;
  const std::uint64_t begin = (address - seen_ + page - 1) / page * page;
  const std::uint64_t end = (address - seen_ + extent) / page * page;
  if (begin < end) madvise(touchable_ + begin, end - begin, MADV_REMOVE);
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + extent == next->first) {
    extent += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == address)
    std::prev(next)->second += extent;
  else
    free_[address] = extent;
}

std::uint64_t DeviceMemory::Allocate(std::size_t bytes, bool from_pool, Moment made, const Clock& before,
                                     std::vector<Moment>* wait_for) {
  if (bytes > capacity_) return 0;
  std::size_t extent = (std::max<std::size_t>(bytes, 1) + kGuard + kAlignment - 1) / kAlignment * kAlignment;
  std::uint64_t address = 0;
  const auto fits = [extent](const Kept& kept) { return kept.extent >= extent && kept.extent <= 2 * extent; };
  if (from_pool) {
    // Takes what this stream may use again, the smallest first; then fresh memory; then what is still in use
    // elsewhere.
    auto best = kept_.end();
    auto best_later = kept_.end();
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (!fits(*kept)) continue;
      auto& slot = before.Covers(kept->freed) ? best : best_later;
      if (slot == kept_.end() || kept->extent < slot->extent) slot = kept;
    }
    if (best == kept_.end()) {
      address = TakeFresh(extent);
      if (address != 0) {
        reserved_ += extent;
      } else if (best_later != kept_.end()) {
        best = best_later;
        wait_for->push_back(best->freed);
      }
    }
    if (address == 0 && best != kept_.end()) {
      address = best->address;
      extent = best->extent;
      kept_.erase(best);
    }
  } else {
    address = TakeFresh(extent);
  }
  if (address == 0) return 0;
  Block block;
  block.bytes = bytes;
  block.extent = extent;
  block.from_pool = from_pool;
  block.id = next_id_++;
  block.made = made;
  live_bytes_ += bytes;
  if (from_pool) {
    pool_used += extent;
    pool_used_high = std::max(pool_used_high, pool_used);
    reserved_high = std::max(reserved_high, reserved_);
  }
  blocks_[address] = std::move(block);
  return address;
}

void DeviceMemory::Free(Blocks::iterator found, Moment freed) {
  const auto [address, block] = *found;
  blocks_.erase(found);
  live_bytes_ -= block.bytes;
  if (block.from_pool) {
    pool_used -= block.extent;
    kept_.push_back({address, block.extent, freed});
  } else {
    Release(address, block.extent);
  }
}

void DeviceMemory::Trim(std::size_t keep, const Clock& host) {
  for (auto kept = kept_.begin(); kept != kept_.end() && reserved_ > keep;) {
    if (!host.Covers(kept->freed)) {
      ++kept;
      continue;
    }
    reserved_ -= kept->extent;
    Release(kept->address, kept->extent);
    kept = kept_.erase(kept);
  }
}

void DeviceMemory::PoisonFresh(std::uint64_t address, std::size_t bytes) const {
  std::byte* at = Touchable(address);
  Poison(at, bytes, kFreshByte);
  std::memset(at + bytes, static_cast<int>(kGuardByte), kGuard);
}

bool DeviceMemory::PoisonFreed(std::uint64_t address, std::size_t bytes) const {
  std::byte* at = Touchable(address);
  const bool whole =
      std::all_of(at + bytes, at + bytes + kGuard, [](std::byte byte) { return byte == kGuardByte; });
  Poison(at, bytes, kFreedByte);
  return whole;
}

DeviceMemory::Blocks::iterator DeviceMemory::Find(std::uint64_t address) {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  --after;
  return address - after->first <= after->second.bytes ? after : blocks_.end();
}

bool DeviceMemory::Use(const MemoryUse& use, Moment moment, const Clock& before,
                       std::vector<std::string>* problems, std::vector<Moment>* missed) {
  if (use.exact && use.bytes == 0) return true;
  auto found = Find(use.address);
  if (found == blocks_.end()) {
    problems->push_back(fmt::format("{:#x} on device {} is in no live allocation", use.address, device_));
    return false;
  }
  Block& block = found->second;
  const std::size_t offset = use.address - found->first;
  if (use.bytes > block.bytes - offset) {
    problems->push_back(fmt::format("{} bytes at offset {} of an allocation of {} bytes on device {}",
                                    use.bytes, offset, block.bytes, device_));
    return false;
  }
  if (!before.Covers(block.made)) {
    problems->push_back(fmt::format(
        "an allocation of {} bytes on device {} is used without waiting for the stream that made it",
        block.bytes, device_));
    missed->push_back(block.made);
  }
  if (use.exact) {
    for (const Block::Access& other : block.accesses) {
      const bool overlap = other.offset < offset + use.bytes && offset < other.offset + other.bytes;
      if (overlap && (other.writes || use.writes) && !before.Covers(other.moment)) {
        problems->push_back(fmt::format(
            "two streams use the same bytes of an allocation of {} bytes on device {} without an event "
            "between them",
            block.bytes, device_));
        if (other.moment.timeline != moment.timeline) missed->push_back(other.moment);
      }
    }
    if (block.accesses.size() == kMostAccesses) block.accesses.erase(block.accesses.begin());
    block.accesses.push_back({moment, offset, use.bytes, use.writes});
  }
  block.used.Add(moment);
  return true;
}

}  // namespace rewire::simulated_cuda
