// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/client_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <utility>

#include "rewire/base/standalone/descriptor.h"

namespace rewire::serve {
namespace {

struct Block {
  std::string name;  // of the object, and of the region at the server
  std::size_t size = 0;
  bool registered = false;
};

// Names differ between processes and between hosts' containers that share /dev/shm.
std::string NewName() {
  static std::atomic<std::uint64_t> count{0};
  static const std::uint64_t process = std::random_device()() | std::uint64_t{std::random_device()()} << 32;
  return "/rewire-" + std::to_string(getpid()) + "-" + std::to_string(process) + "-" +
         std::to_string(++count);
}

// The region of an object, whose name begins with a slash that a path of HTTP would take for its own.
std::string RegionOf(const std::string& name) { return name.substr(1); }

void* MapNew(const std::string& name, std::size_t size) {
  const Descriptor file(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return nullptr;
  // Takes the memory now, so that a full /dev/shm is no memory, and no SIGBUS later.
  const bool sized = posix_fallocate(file.get(), 0, static_cast<off_t>(size)) == 0;
  void* const map =
      sized ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0) : MAP_FAILED;
  if (map != MAP_FAILED) return map;
  shm_unlink(name.c_str());
  return nullptr;
}

}  // namespace

struct ClientRegions::Blocks {
  std::mutex mutex;
  std::mutex registering;  // held while a server is asked, before `mutex`
  std::map<const std::byte*, Block> blocks;
  std::vector<std::string> freed;  // regions that the server still has
  std::size_t users = 1;           // blocks, and the object

  void Release(std::unique_lock<std::mutex> lock) {
    const bool last = --users == 0;
    lock.unlock();
    if (last) delete this;
  }

  void* Take(std::size_t size) {
    std::string name = NewName();
    void* const memory = MapNew(name, size);
    if (memory == nullptr) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex);
    blocks[static_cast<const std::byte*>(memory)] = {std::move(name), size, false};
    ++users;
    return memory;
  }
  void Give(void* memory) {
    std::unique_lock<std::mutex> lock(mutex);
    const auto found = blocks.find(static_cast<const std::byte*>(memory));
    const Block block = std::move(found->second);
    blocks.erase(found);
    munmap(memory, block.size);
    if (block.registered) {
      freed.push_back(RegionOf(block.name));
    } else {
      shm_unlink(block.name.c_str());
    }
    Release(std::move(lock));
  }

  static void* Allocate(void* context, std::size_t size, std::size_t alignment) {
    if (size < kLeastShared) return DefaultAllocator().allocate(nullptr, size, alignment);
    // A mapping begins at a page, which is more than anybody asks for.
    return alignment > 4096 ? nullptr : static_cast<Blocks*>(context)->Take(size);
  }
  static void Deallocate(void* context, void* pointer, std::size_t size, std::size_t alignment) {
    if (size < kLeastShared) return DefaultAllocator().deallocate(nullptr, pointer, size, alignment);
    static_cast<Blocks*>(context)->Give(pointer);
  }
};

ClientRegions::ClientRegions() : blocks_(new Blocks) {}

ClientRegions::~ClientRegions() { blocks_->Release(std::unique_lock<std::mutex>(blocks_->mutex)); }

std::shared_ptr<ClientRegions> ClientRegions::Make() {
  return std::shared_ptr<ClientRegions>(new ClientRegions);
}

Allocator ClientRegions::allocator() { return {blocks_, &Blocks::Allocate, &Blocks::Deallocate}; }

Result<RegionPlace> ClientRegions::Find(const void* data, std::uint64_t bytes, Channel* channel,
                                        const Patience& patience) {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::lock_guard<std::mutex> one(blocks_->registering);
  std::unique_lock<std::mutex> lock(blocks_->mutex);
  auto found = blocks_->blocks.upper_bound(begin);
  if (bytes == 0 || found == blocks_->blocks.begin()) return RegionPlace{};
  --found;
  const auto offset = static_cast<std::uint64_t>(begin - found->first);
  Block& block = found->second;
  if (offset >= block.size || bytes > block.size - offset) return RegionPlace{};
  // The caller's tensor keeps the block, so it stays without the lock.
  const std::string_view region = std::string_view(block.name).substr(1);
  if (!block.registered) {
    lock.unlock();
    if (Status done = channel->RegisterRegion(RegionOf(block.name), block.name, block.size, patience); !done)
      return Forward(done);
    // The server keeps it open. Without a name it is gone when both have ended, however they end.
    shm_unlink(block.name.c_str());
    lock.lock();
    block.registered = true;
  }
  return RegionPlace{region, offset};
}

void ClientRegions::UnregisterFreed(Channel* channel, const Patience& patience) {
  std::vector<std::string> freed;
  {
    const std::lock_guard<std::mutex> lock(blocks_->mutex);
    freed.swap(blocks_->freed);
  }
  for (const std::string& region : freed) {
    if (!channel->usable() || !channel->UnregisterRegion(region, patience)) return;
  }
}

bool ClientRegions::has_registered() const {
  const std::lock_guard<std::mutex> lock(blocks_->mutex);
  for (const auto& [data, block] : blocks_->blocks) {
    if (block.registered) return true;
  }
  return !blocks_->freed.empty();
}

void ClientRegions::UnregisterAll(Channel* channel, const Patience& patience) {
  {
    const std::lock_guard<std::mutex> lock(blocks_->mutex);
    for (auto& [data, block] : blocks_->blocks) {
      if (std::exchange(block.registered, false)) blocks_->freed.push_back(RegionOf(block.name));
    }
  }
  UnregisterFreed(channel, patience);
}

}  // namespace rewire::serve
