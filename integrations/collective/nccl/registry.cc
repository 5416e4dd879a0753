// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/nccl/registry.h"

#include "rewire/integrations/collective/nccl/collective_nccl.h"
#include "rewire/kernels/cpu/exported_table.h"

namespace rewire::collective {

std::span<const kernel::cpu::Family> NcclFamilies() {
  static const kernel::cpu::Family kFamilies[] = {{"Reductions over ranks", NcclReduceKernels()},
                                                  {"Tensors from rank to rank", NcclMoveKernels()},
                                                  {"Exchanges beside other work", NcclOverlapKernels()}};
  return kFamilies;
}

}  // namespace rewire::collective

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireNcclKernels() {
  static const rewire::kernel::cpu::ExportedTable kTable(rewire::collective::NcclFamilies(), false);
  return kTable.table();
}
