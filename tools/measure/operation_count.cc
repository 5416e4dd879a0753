// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/operation_count.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/kernels/contract/work.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::tools {
namespace {

double Elements(const DLTensor& tensor) {
  double count = 1;
  for (std::int32_t i = 0; i < tensor.ndim; ++i) count *= static_cast<double>(tensor.shape[i]);
  return count;
}

const AttributeValue* Find(const KernelImport& import, std::string_view name) {
  for (const Attribute& attribute : import.attributes) {
    if (attribute.name == name) return &attribute.value;
  }
  return nullptr;
}

// An import's attributes, as names::WorkOf reads them.
struct ImportAttributes {
  const KernelImport& import;

  double Product(std::string_view name, std::size_t first) const {
    const AttributeValue* value = Find(import, name);
    const auto* list = value == nullptr ? nullptr : std::get_if<Array<std::int64_t>>(value);
    if (list == nullptr || list->size() <= first) return 0;
    double product = 1;
    for (std::size_t i = first; i < list->size(); ++i) product *= static_cast<double>((*list)[i]);
    return product;
  }
  std::int64_t Int(std::string_view name, std::int64_t otherwise) const {
    const AttributeValue* value = Find(import, name);
    const auto* integer = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    return integer == nullptr ? otherwise : *integer;
  }
};

}  // namespace

OperationCount CountOperations(const KernelImport& import, Span<const RewireFFIAny> args) {
  OperationCount count;
  std::vector<const DLTensor*> tensors;
  std::set<const void*> seen;
  for (const RewireFFIAny& arg : args) {
    const DLTensor* tensor = RewireTensorOf(&arg);
    if (tensor == nullptr) continue;
    tensors.push_back(tensor);
    if (seen.insert(static_cast<const std::byte*>(tensor->data) + tensor->byte_offset).second)
      count.bytes += Elements(*tensor) * static_cast<double>(ElementBytes(tensor->dtype));
  }
  if (tensors.size() < 3) return count;
  // The output comes last.
  std::vector<names::WorkShape> shapes;
  for (const DLTensor* tensor : tensors) shapes.push_back({tensor->shape, tensor->ndim});
  const names::Work work = names::ProductsOf(import.name, ImportAttributes{import}, shapes.data(),
                                             shapes.size() - 1, shapes.back());
  count.operations = 2 * work.plain_products;
  return count;
}

}  // namespace rewire::tools
