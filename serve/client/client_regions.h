// SPDX-License-Identifier: Apache-2.0
//
// ClientRegions: memory of a client that it shares with a server on the same machine. Each block is an object
// of shared memory, which the server maps when a tensor in it is first used in a call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/serve/client/channel.h"
#include "rewire/vm/allocator.h"

namespace rewire::serve {

// Thread-safe.
class ClientRegions {
 public:
  static std::shared_ptr<ClientRegions> Make();
  ~ClientRegions();

  // Blocks from this size on are shared with the server. Smaller ones are ordinary memory: a page and a call
  // of the server for each would take more than sending them.
  static constexpr std::size_t kLeastShared = 4096;
  // Its context stays as long as a block is in use, also after this object is gone.
  Allocator allocator();

  // Finds where these bytes lie, for the server. The region is registered there first, by `channel`. Without
  // a block that has all of the bytes, the place is empty. Errors: those of the channel.
  Result<RegionPlace> Find(const void* data, std::uint64_t bytes, Channel* channel, const Patience& patience);
  // Lets the server unmap the blocks that have been freed. What it answers makes no difference.
  void UnregisterFreed(Channel* channel, const Patience& patience);
  // Whether the server has regions: those that are freed, and those in use.
  bool has_registered() const;
  // Lets the server unmap all blocks. There are no calls behind it.
  void UnregisterAll(Channel* channel, const Patience& patience);

 private:
  struct Blocks;
  ClientRegions();

  Blocks* blocks_;  // counted; blocks in use keep it
};

}  // namespace rewire::serve
