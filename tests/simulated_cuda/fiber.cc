// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/simulated_cuda/fiber.h"

#include <sys/mman.h>

#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REWIRE_FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define REWIRE_FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define REWIRE_FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define REWIRE_FIBER_TSAN 1
#endif
#ifdef REWIRE_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef REWIRE_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace rewire::simulated_cuda {
namespace {

namespace boost_context = boost::context::detail;

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::size_t kPage = 4096;  // without access, below the stack

}  // namespace

Fiber::Fiber() {
  void* memory =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kPage, PROT_NONE);
  stack_ = static_cast<char*>(memory);
#ifdef REWIRE_FIBER_TSAN
  own_thread_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef REWIRE_FIBER_TSAN
  __tsan_destroy_fiber(own_thread_);
#endif
  munmap(stack_, kStackBytes);
}

void Fiber::Prepare(void (*body)(void*), void* context) {
  body_ = body;
  context_ = context;
  own_fake_stack_ = nullptr;
  here_ = boost_context::make_fcontext(stack_ + kStackBytes, kStackBytes - kPage, &Fiber::Begin);
}

void Fiber::Begin(boost_context::transfer_t from) {
  auto* self = static_cast<Fiber*>(from.data);
  self->caller_ = from.fctx;
  self->Arrived();
  self->body_(self->context_);
  __builtin_unreachable();
}

// On the fiber's stack, after each change to it.
void Fiber::Arrived() {
#ifdef REWIRE_FIBER_ASAN
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_bottom_, &caller_size_);
#endif
}

void Fiber::Enter() {
#ifdef REWIRE_FIBER_ASAN
  __sanitizer_start_switch_fiber(&caller_fake_stack_, stack_ + kPage, kStackBytes - kPage);
#endif
#ifdef REWIRE_FIBER_TSAN
  caller_thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_thread_, 0);
#endif
  here_ = boost_context::jump_fcontext(here_, this).fctx;
#ifdef REWIRE_FIBER_ASAN
  __sanitizer_finish_switch_fiber(caller_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Leave() {
#ifdef REWIRE_FIBER_ASAN
  __sanitizer_start_switch_fiber(&own_fake_stack_, caller_bottom_, caller_size_);
#endif
#ifdef REWIRE_FIBER_TSAN
  __tsan_switch_to_fiber(caller_thread_, 0);
#endif
  caller_ = boost_context::jump_fcontext(caller_, nullptr).fctx;
  Arrived();
}

}  // namespace rewire::simulated_cuda
