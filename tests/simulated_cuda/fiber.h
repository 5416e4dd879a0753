// SPDX-License-Identifier: Apache-2.0
// Stacks that a thread changes between, by Boost.Context, with what the sanitizers must be told.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace rewire::simulated_cuda {

// A function on a stack of its own. Runs on one thread at a time: from Enter until it leaves.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Enter begins `body(context)`, which must not return but leave for the last time. What the stack
  // held is dropped.
  void Prepare(void (*body)(void*), void* context);
  // From the thread's own stack: runs the fiber until it leaves.
  void Enter();
  // From the fiber: goes back to the thread's own stack, until the next Enter.
  void Leave();

 private:
  static void Begin(boost::context::detail::transfer_t from);
  void Arrived();

  char* stack_ = nullptr;
  boost::context::detail::fcontext_t here_ = nullptr;    // where the fiber left
  boost::context::detail::fcontext_t caller_ = nullptr;  // where it was entered
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;
  // The fields of the sanitizers:
  [[maybe_unused]] void* own_fake_stack_ = nullptr;
  [[maybe_unused]] void* caller_fake_stack_ = nullptr;
  [[maybe_unused]] const void* caller_bottom_ = nullptr;
  [[maybe_unused]] std::size_t caller_size_ = 0;
  [[maybe_unused]] void* own_thread_ = nullptr;
  [[maybe_unused]] void* caller_thread_ = nullptr;
};

}  // namespace rewire::simulated_cuda
