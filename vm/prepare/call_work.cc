// SPDX-License-Identifier: Apache-2.0
//
// The work of a call in a run. The compiler and librewire_prepare have kernel_work.cc; this needs the linker.
#include <cstdint>

#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/link/kernel_calls.h"
#include "rewire/vm/prepare/kernel_work.h"

namespace rewire {

std::optional<CallWork> WorkOf(const PackedFunction& kernel, const KernelImport& import,
                               Span<const RewireFFIAny> args) {
  if (kernel.work == nullptr) return std::nullopt;
  const auto count = static_cast<std::uint32_t>(args.size());
  const KernelCalls calls(kernel.row, import);
  const std::optional<KernelCalls::Range> outputs = calls.known() ? calls.Outputs(count) : std::nullopt;
  if (!outputs) return std::nullopt;
  WorkCall call;
  for (std::uint32_t i = 0; i < count; ++i) {
    const DLTensor* tensor = RewireTensorOf(&args[i]);
    auto& side = i < count - outputs->least ? call.read : call.written;
    if (tensor == nullptr) {
      side.emplace_back();
    } else {
      side.emplace_back(WorkDims(tensor->shape, tensor->shape + tensor->ndim));
    }
  }
  call.attributes = import.attributes;
  return WorkOf(kernel.row, kernel.work, call);
}

}  // namespace rewire
