// SPDX-License-Identifier: Apache-2.0
// A kernel table (vm/kernel/kernel.h) that can be searched.
#pragma once

#include <string>

#include "base/array.h"
#include "vm/kernel/kernel.h"

namespace rewire {

// Refers to the table. Immutable. Entries without a name or a function are left out.
class KernelTableIndex {
 public:
  explicit KernelTableIndex(const RewireKernelTable& table);

  // Null when the table has no such kernel; the later one when it has two.
  const RewireKernelEntry* Find(const std::string& name) const;
  // In order, each once.
  Array<std::string> Names() const;

 private:
  Array<const RewireKernelEntry*> sorted_;
};

}  // namespace rewire
