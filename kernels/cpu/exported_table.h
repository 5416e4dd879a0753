// SPDX-License-Identifier: Apache-2.0
//
// Makes the table of a kernel library from the rows of its families.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {

// Refers to the families' rows. table() is valid as long as this object exists and is not moved.
class ExportedTable {
 public:
  // `declares_workspace`: the workspace in the rows is complete. Otherwise the library does not declare the
  // workspace of its kernels.
  ExportedTable(std::span<const Family> families, bool declares_workspace) {
    for (const Family& family : families) {
      for (const Kernel& kernel : family.kernels) {
        entries_.push_back(kernel.entry);
        rows_.push_back({kernel.arguments.list, kernel.arguments.count, kernel.traits, kernel.attributes,
                         declares_workspace ? kernel.workspace : nullptr});
      }
    }
    table_ = {sizeof(RewireKernelTable), static_cast<std::uint32_t>(entries_.size()), entries_.data(),
              rows_.data()};
  }
  ExportedTable(const ExportedTable&) = delete;
  ExportedTable& operator=(const ExportedTable&) = delete;

  const RewireKernelTable* table() const { return &table_; }

 private:
  std::vector<RewireKernelEntry> entries_;
  std::vector<RewireKernelRow> rows_;
  RewireKernelTable table_{};
};

}  // namespace rewire::kernel::cpu
