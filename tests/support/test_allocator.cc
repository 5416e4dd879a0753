// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/support/test_allocator.h"

namespace rewire::test {

Allocator TestAllocator::allocator() {
  Allocator allocator;
  allocator.context = this;
  allocator.allocate = [](void* context, std::size_t size, std::size_t alignment) -> void* {
    auto* self = static_cast<TestAllocator*>(context);
    ++self->calls_;
    if (self->countdown_ > 0 && --self->countdown_ == 0) {
      if (self->lasting_) self->countdown_ = 1;
      self->failed_ = true;
      return nullptr;
    }
    ++self->blocks_;
    self->bytes_ += static_cast<std::int64_t>(size);
    const Allocator base = DefaultAllocator();
    return base.allocate(base.context, size, alignment);
  };
  allocator.deallocate = [](void* context, void* pointer, std::size_t size, std::size_t alignment) {
    auto* self = static_cast<TestAllocator*>(context);
    --self->blocks_;
    self->bytes_ -= static_cast<std::int64_t>(size);
    const Allocator base = DefaultAllocator();
    base.deallocate(base.context, pointer, size, alignment);
  };
  return allocator;
}

}  // namespace rewire::test
