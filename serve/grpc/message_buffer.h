// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "rewire/base/span.h"
#include "rewire/serve/core/aligned_memory.h"

namespace rewire::serve {

// Collects one message. Its tensors are aligned where they lie, so that a model reads them there: the message
// is placed by the offset that they have in it. That holds for the first tensor, and for those behind it
// whose offsets fit.
class MessageBuffer {
 public:
  // Begins a message of `size` bytes.
  void Begin(std::size_t size);
  // Adds bytes, at most as many as are missing. Returns false if there is no memory for them.
  bool Add(Span<const std::byte> bytes);
  // The message is not needed any more. Its memory is kept for the next one if it has at most `keep` bytes.
  void LetGo(std::size_t keep);
  std::size_t missing() const { return size_ - got_; }
  std::size_t size() const { return size_; }
  std::string_view message() const { return {reinterpret_cast<const char*>(memory_.get() + shift_), got_}; }

 private:
  // Memory follows what arrives, not what was announced.
  bool Reserve(std::size_t bytes);

  AlignedMemory memory_;
  std::size_t room_ = 0;   // behind shift_
  std::size_t shift_ = 0;  // of the message in the memory
  std::size_t size_ = 0, got_ = 0;
};

}  // namespace rewire::serve
