// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/registry.h"

#include "rewire/kernels/cpu/exported_table.h"
#include "rewire/kernels/device/kernels_device.h"

namespace rewire::kernel::device {

std::span<const cpu::Family> Families() {
  static const cpu::Family kFamilies[] = {
      {"Two operands", BinaryKernels()},
      {"Elementwise", ElementwiseKernels()},
      {"Casts", CastKernels()},
      {"Matrix products", ProductKernels()},
      {"Integer products", IntegerProductKernels()},
      {"Quantization", QuantizationKernels()},
      {"Windows", WindowKernels()},
      {"Resizing", ResizeKernels()},
      {"Reductions", ReductionKernels()},
      {"Lines", LineKernels()},
      {"Recurrent layers", RecurrentKernels()},
      {"Normalization", NormalizationKernels()},
      {"Movement", MovementKernels()},
      {"Padding", PadKernels()},
      {"Attention", AttentionKernels()},
      {"Elements by index", GatherKernels()},
      {"Updates by index", ScatterKernels()},
      {"Decision trees", TreeEnsembleKernels()},
  };
  return kFamilies;
}

}  // namespace rewire::kernel::device

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireDeviceKernels() {
  static const rewire::kernel::cpu::ExportedTable kTable(rewire::kernel::device::Families(), true);
  return kTable.table();
}
