// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/registry.h"

#include "rewire/kernels/cpu/exported_table.h"
#include "rewire/kernels/image/kernels_image.h"

namespace rewire::kernel::image {

std::span<const cpu::Family> Families() {
  static const cpu::Family kFamilies[] = {{"Encoded pictures", DecodeKernels()}};
  return kFamilies;
}

}  // namespace rewire::kernel::image

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireImageKernels() {
  static const rewire::kernel::cpu::ExportedTable kTable(rewire::kernel::image::Families(), false);
  return kTable.table();
}
