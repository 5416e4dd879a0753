// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "rewire/base/span.h"

namespace rewire::serve {

// The bytes that a connection has to send, in order. Large ones are sent from where they lie.
class OutputQueue {
 public:
  // Copies the bytes.
  void Add(Span<const std::byte> bytes);
  // Keeps `owner` until the bytes are sent. Few bytes are copied instead.
  void AddView(Span<const std::byte> bytes, std::shared_ptr<const void> owner);

  bool empty() const { return bytes_ == 0; }
  std::size_t bytes() const { return bytes_; }
  // Fills at most `room` parts with what is sent next, and returns their number.
  std::size_t Next(iovec* parts, std::size_t room) const;
  // Takes out what has been sent.
  void Drop(std::size_t bytes);

 private:
  struct Piece {
    std::string copy;  // or else:
    Span<const std::byte> view;
    std::shared_ptr<const void> owner;  // of the view
    Span<const std::byte> bytes() const;
  };
  std::deque<Piece> pieces_;
  std::string spare_;     // the buffer of a piece that was sent, for the next one
  std::size_t sent_ = 0;  // of the first piece
  std::size_t bytes_ = 0;
};

}  // namespace rewire::serve
