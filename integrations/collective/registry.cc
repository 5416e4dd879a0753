// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/registry.h"

#include "rewire/integrations/collective/collective_mpi.h"
#include "rewire/kernels/cpu/exported_table.h"

namespace rewire::collective {

std::span<const kernel::cpu::Family> Families() {
  static const kernel::cpu::Family kFamilies[] = {{"Reductions over ranks", ReduceKernels()},
                                                  {"Tensors from rank to rank", MoveKernels()}};
  return kFamilies;
}

}  // namespace rewire::collective

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireCollectiveKernels() {
  static const rewire::kernel::cpu::ExportedTable kTable(rewire::collective::Families(), false);
  return kTable.table();
}
