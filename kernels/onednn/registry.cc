// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/onednn/registry.h"

#include "rewire/kernels/cpu/exported_table.h"
#include "rewire/kernels/onednn/kernels_onednn.h"

namespace rewire::kernel::onednn {

std::span<const cpu::Family> Families() {
  static const cpu::Family kFamilies[] = {
      {"Convolution", ConvKernels()},
      {"Matrix products", MatMulKernels()},
  };
  return kFamilies;
}

}  // namespace rewire::kernel::onednn

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireOneDnnKernels() {
  static const rewire::kernel::cpu::ExportedTable kTable(rewire::kernel::onednn::Families(), false);
  return kTable.table();
}
