// SPDX-License-Identifier: Apache-2.0
// How much memory is taken at most in a stretch of code. A program that links this has its operator new
// replaced by one that counts; what is taken by malloc itself is not seen, but that is what a file's tensors
// are copied to, never more than the file has.
#pragma once

#include <cstddef>

namespace rewire::tvm {

// Counts from its construction. One at a time, on one thread.
class MemoryWatch {
 public:
  MemoryWatch();
  // The most bytes held at once beyond what was held at the start.
  std::size_t peak() const;
  // The bytes that are held now beyond what was held at the start; 0 also when there are fewer.
  std::size_t held() const;
};

}  // namespace rewire::tvm
