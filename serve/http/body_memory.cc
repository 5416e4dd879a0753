// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/body_memory.h"

#include <cstring>
#include <new>

#include "rewire/serve/core/arena.h"
#include "rewire/serve/http/infer_json.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kAlignment = Arena::kAlignment;
constexpr std::size_t kKept = std::size_t{256} << 10;

}  // namespace

void BodyMemory::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

bool BodyMemory::Begin(std::size_t bytes, std::size_t json, std::string_view begin) {
  const std::size_t before = (kAlignment - json % kAlignment) % kAlignment;
  const std::size_t room = before + bytes + kJsonPadding;
  if (room > room_) {
    memory_.reset();
    room_ = 0;
    auto* const memory =
        static_cast<std::byte*>(::operator new (room, std::align_val_t{kAlignment}, std::nothrow));
    if (memory == nullptr) return false;
    memory_.reset(memory);
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
