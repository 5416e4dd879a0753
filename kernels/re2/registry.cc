// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/re2/registry.h"

#include "rewire/kernels/cpu/exported_table.h"
#include "rewire/kernels/re2/kernels_re2.h"

namespace rewire::kernel::re2 {

std::span<const cpu::Family> Families() {
  static const cpu::Family kFamilies[] = {{"Regular expressions", MatchKernels()}};
  return kFamilies;
}

}  // namespace rewire::kernel::re2

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireRe2Kernels() {
  static const rewire::kernel::cpu::ExportedTable kTable(rewire::kernel::re2::Families(), false);
  return kTable.table();
}
