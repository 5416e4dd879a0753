// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/registry.h"

#include <vector>

#include "rewire/kernels/cpu/exported_table.h"
#include "rewire/kernels/cpu/kernels_cpu.h"

namespace rewire::kernel::cpu {

std::span<const Family> Families() {
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> families;
// The build defines REWIRE_HAS_* as 1 or 0, by REWIRE_KERNEL_FAMILIES. A family that is left out is not
// referred to.
#define REWIRE_FAMILY(file, name, title) \
  if constexpr (REWIRE_HAS_##file != 0) families.push_back({title, name##Kernels()});
#include "rewire/kernels/cpu/families.def"
#undef REWIRE_FAMILY
    return families;
  }();
  return kFamilies;
}

}  // namespace rewire::kernel::cpu

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireCpuKernels() {
  static const rewire::kernel::cpu::ExportedTable kTable(rewire::kernel::cpu::Families(), true);
  return kTable.table();
}
