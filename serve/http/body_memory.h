// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "rewire/serve/core/aligned_memory.h"

namespace rewire::serve {

// BodyMemory: where the body of a request is received. It is kept from one request to the next.
class BodyMemory {
 public:
  // Makes room for `bytes`, of which the first `json` are JSON, and for the bytes that its parser needs
  // behind them. The tensors behind the JSON are aligned. `begin` has arrived already. False if there is no
  // memory.
  bool Begin(std::size_t bytes, std::size_t json, std::string_view begin);
  // Gives memory back that is too much to keep.
  void End();

  std::byte* data() { return data_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), bytes_}; }
  std::size_t bytes() const { return bytes_; }
  // The part that has not arrived yet.
  std::byte* missing() { return data_ + got_; }
  std::size_t missing_bytes() const { return bytes_ - got_; }
  void Got(std::size_t bytes) { got_ += bytes; }

 private:
  AlignedMemory memory_;
  std::size_t room_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t got_ = 0;
};

}  // namespace rewire::serve
