// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/message_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/serve/grpc/infer_message.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kFirstRoom = std::size_t{64} << 10;

}  // namespace

void MessageBuffer::Begin(std::size_t size) {
  size_ = size;
  got_ = shift_ = 0;
}

bool MessageBuffer::Reserve(std::size_t bytes) {
  if (bytes <= room_) return true;
  const std::size_t room = std::min(std::max({bytes, 2 * room_, kFirstRoom}), std::max(size_, bytes));
  AlignedMemory larger = AllocateAligned(room + kTensorAlignment);
  if (larger == nullptr) return false;
  if (got_ > 0) std::memcpy(larger.get() + shift_, memory_.get() + shift_, got_);
  memory_ = std::move(larger);
  room_ = room;
  return true;
}

bool MessageBuffer::Add(Span<const std::byte> bytes) {
  if (!Reserve(got_ + bytes.size())) return false;
  if (got_ == 0) {
    const std::size_t offset = OffsetOfTensors({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    shift_ = (kTensorAlignment - offset % kTensorAlignment) % kTensorAlignment;
  }
  std::memcpy(memory_.get() + shift_ + got_, bytes.data(), bytes.size());
  got_ += bytes.size();
  return true;
}

void MessageBuffer::LetGo(std::size_t keep) {
  Begin(0);
  if (room_ <= keep) return;
  memory_ = nullptr;
  room_ = 0;
}

}  // namespace rewire::serve
