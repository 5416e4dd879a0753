// SPDX-License-Identifier: Apache-2.0
// Measures the most memory that a stretch of code holds at once.
//
// A program that links this gets an operator new that counts bytes. Memory taken by calling malloc itself is
// not counted. The import copies a file's tensors to such memory, so at most the size of the file is missed.
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
