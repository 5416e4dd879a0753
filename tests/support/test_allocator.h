// SPDX-License-Identifier: Apache-2.0
// An allocator that tests look into.
#pragma once

#include <atomic>
#include <cstdint>

#include "rewire/vm/allocator.h"

namespace rewire::test {

// Counts what is taken and given back, and can refuse. Thread-safe.
class TestAllocator {
 public:
  Allocator allocator();
  std::int64_t blocks() const { return blocks_; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t calls() const { return calls_; }
  // The k-th allocation from now on (1 is the next) fails, with `lasting` all after it, too. 0: none.
  void FailAt(std::int64_t k, bool lasting = false) {
    failed_ = false;
    lasting_ = lasting;
    countdown_ = k;
  }
  // One has failed since.
  bool failed() const { return failed_; }

 private:
  std::atomic<std::int64_t> blocks_{0};
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::int64_t> calls_{0};
  std::atomic<std::int64_t> countdown_{0};
  std::atomic<bool> lasting_{false};
  std::atomic<bool> failed_{false};
};

}  // namespace rewire::test
