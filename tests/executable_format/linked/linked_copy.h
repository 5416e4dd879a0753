// SPDX-License-Identifier: Apache-2.0
// LinkedCopy: what vm-aot --bytecode puts into a program, in memory of the test.
#pragma once

#include "rewire/base/shared_bytes.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/linked/linked_executable.h"
#include "rewire/executable_format/linked/linked_image.h"

namespace rewire::test {

class LinkedCopy {
 public:
  // Throws Error if the executable cannot be linked in.
  explicit LinkedCopy(const Executable& executable);

  const LinkedImage& image() const { return image_; }
  const RewireLinkedExecutable& linked() const { return linked_; }
  // Opens the copy. The executable must not outlive this object.
  Executable Open() const;

 private:
  LinkedImage image_;
  SharedBytes tables_;
  SharedBytes data_;
  RewireLinkedExecutable linked_{};
};

// The symbol by which this library knows the executables that were made for it.
const char* LinkedVersion();

}  // namespace rewire::test
