// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/operation_count.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "rewire/base/dtype.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/prepare/kernel_work.h"

namespace rewire::tools {
namespace {

double Elements(const DLTensor& tensor) {
  double count = 1;
  for (std::int32_t i = 0; i < tensor.ndim; ++i) count *= static_cast<double>(tensor.shape[i]);
  return count;
}

}  // namespace

OperationCount CountOperations(const PackedFunction& kernel, const KernelImport& import,
                               Span<const RewireFFIAny> args) {
  OperationCount count;
  std::set<const void*> seen;
  for (const RewireFFIAny& arg : args) {
    const DLTensor* tensor = RewireTensorOf(&arg);
    if (tensor == nullptr) continue;
    if (seen.insert(static_cast<const std::byte*>(tensor->data) + tensor->byte_offset).second)
      count.bytes += Elements(*tensor) * static_cast<double>(ElementBytes(tensor->dtype));
  }
  if (const std::optional<CallWork> work = WorkOf(kernel, import, args))
    count.operations = 2 * work->plain_products;
  return count;
}

}  // namespace rewire::tools
