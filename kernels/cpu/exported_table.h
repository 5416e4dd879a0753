// SPDX-License-Identifier: Apache-2.0
//
// Makes the table of a kernel library from the rows of its families. The work of each kernel stands in
// kernels/contract.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rewire/kernels/contract/work.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/vm/kernel/work.h"

namespace rewire::kernel::cpu {

// Refers to the families' rows. table() is valid as long as this object exists and is not moved.
class ExportedTable {
 public:
  // `declares_workspace`: the workspace in the rows is complete. Otherwise the library does not declare the
  // workspace of its kernels.
  ExportedTable(std::span<const Family> families, bool declares_workspace) {
    const names::WorkOfKernels work;
    for (const Family& family : families) {
      for (const Kernel& kernel : family.kernels) {
        entries_.push_back(kernel.entry);
        rows_.push_back({kernel.arguments.list, kernel.arguments.count, kernel.traits, kernel.attributes,
                         declares_workspace ? kernel.workspace : nullptr});
        work_.push_back(work.Find(kernel.entry.name));
      }
    }
    table_ = {{sizeof(RewireKernelWorkTable), static_cast<std::uint32_t>(entries_.size()), entries_.data(),
               rows_.data()},
              work_.data()};
  }
  ExportedTable(const ExportedTable&) = delete;
  ExportedTable& operator=(const ExportedTable&) = delete;

  const RewireKernelTable* table() const { return &table_.table; }

 private:
  std::vector<RewireKernelEntry> entries_;
  std::vector<RewireKernelRow> rows_;
  std::vector<RewireKernelWork> work_;
  RewireKernelWorkTable table_{};
};

}  // namespace rewire::kernel::cpu
