// SPDX-License-Identifier: Apache-2.0
#include "kernels/onednn/registry.h"

#include <vector>

#include "kernels/onednn/kernels_onednn.h"

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
  static const std::vector<RewireKernelEntry> kEntries = [] {
    std::vector<RewireKernelEntry> entries;
    for (const auto& family : rewire::kernel::onednn::Families()) {
      for (const auto& kernel : family.kernels) entries.push_back(kernel.entry);
    }
    return entries;
  }();
  static const RewireKernelTable kTable = {sizeof(RewireKernelTable),
                                           static_cast<std::uint32_t>(kEntries.size()), kEntries.data()};
  return &kTable;
}
