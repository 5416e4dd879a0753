// SPDX-License-Identifier: Apache-2.0
// A kernel table (vm/kernel/kernel.h) that can be searched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rewire/base/array.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

// An index of a table, which it refers to. Immutable. Entries without a name or a function are left out.
class KernelTableIndex {
 public:
  // The smallest allowed struct_size of a table. Tables from before rows existed have this size.
  static constexpr std::uint32_t kLeastSize = offsetof(RewireKernelTable, rows);

  explicit KernelTableIndex(const RewireKernelTable& table);

  // Null if the table has no such kernel. If it has two, the later one.
  const RewireKernelEntry* Find(const std::string& name) const;
  // The function of an entry, with its row and work and without an owner. Empty for null.
  PackedFunction FunctionOf(const RewireKernelEntry* entry) const;
  // Names in order, each once.
  Array<std::string> Names() const;

 private:
  const RewireKernelEntry* entries_;
  const RewireKernelRow* rows_ = nullptr;
  const RewireKernelWork* work_ = nullptr;
  Array<const RewireKernelEntry*> sorted_;
};

}  // namespace rewire
