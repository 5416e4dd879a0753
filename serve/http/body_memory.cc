// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/body_memory.h"

#include <cstring>

#include "rewire/serve/http/infer_json.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kKept = std::size_t{256} << 10;

}  // namespace

bool BodyMemory::Begin(std::size_t bytes, std::size_t json, std::string_view begin) {
  const std::size_t before = (kTensorAlignment - json % kTensorAlignment) % kTensorAlignment;
  const std::size_t room = before + bytes + kJsonPadding;
  if (room > room_) {
    memory_.reset();
    room_ = 0;
    memory_ = AllocateAligned(room);
    if (memory_ == nullptr) return false;
    room_ = room;
  }
  data_ = memory_.get() + before;
  bytes_ = bytes;
  got_ = begin.size();
  if (!begin.empty()) std::memcpy(data_, begin.data(), begin.size());
  std::memset(data_ + bytes_, 0, kJsonPadding);
  return true;
}

void BodyMemory::End() {
  if (room_ <= kKept) return;
  memory_.reset();
  room_ = 0;
}

}  // namespace rewire::serve
