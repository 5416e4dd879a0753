// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/output_queue.h"

#include <utility>

namespace rewire::serve {
namespace {

// Copying so few bytes takes less than a part more in a call of the kernel.
constexpr std::size_t kFewBytes = 2048;
constexpr std::size_t kMostCopied = std::size_t{64} << 10;  // in one piece
constexpr std::size_t kMostKept = 1024;                     // while nothing is to be sent

}  // namespace

Span<const std::byte> OutputQueue::Piece::bytes() const {
  if (owner != nullptr) return view;
  return {reinterpret_cast<const std::byte*>(copy.data()), copy.size()};
}

void OutputQueue::Add(Span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (pieces_.empty() || pieces_.back().owner != nullptr || pieces_.back().copy.size() > kMostCopied) {
    pieces_.emplace_back();
    pieces_.back().copy.swap(spare_);
  }
  pieces_.back().copy.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  bytes_ += bytes.size();
}

void OutputQueue::AddView(Span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() <= kFewBytes || owner == nullptr) return Add(bytes);
  pieces_.push_back({{}, bytes, std::move(owner)});
  bytes_ += bytes.size();
}

std::size_t OutputQueue::Next(iovec* parts, std::size_t room) const {
  std::size_t count = 0, skipped = sent_;
  for (const Piece& piece : pieces_) {
    if (count == room) break;
    const Span<const std::byte> bytes = piece.bytes();
    parts[count++] = {const_cast<std::byte*>(bytes.data()) + skipped, bytes.size() - skipped};
    skipped = 0;
  }
  return count;
}

void OutputQueue::Drop(std::size_t bytes) {
  bytes_ -= bytes;
  sent_ += bytes;
  while (!pieces_.empty() && sent_ >= pieces_.front().bytes().size()) {
    sent_ -= pieces_.front().bytes().size();
    std::string& copy = pieces_.front().copy;
    if (copy.capacity() > spare_.capacity() && copy.capacity() <= kMostKept) {
      copy.clear();
      spare_.swap(copy);
    }
    pieces_.pop_front();
  }
}

}  // namespace rewire::serve
