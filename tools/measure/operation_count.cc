// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/operation_count.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::tools {
namespace {

double Elements(const DLTensor& tensor) {
  double count = 1;
  for (std::int32_t i = 0; i < tensor.ndim; ++i) count *= static_cast<double>(tensor.shape[i]);
  return count;
}

// Dimension `axis`, counted from the end if it is negative. 1 if there is none.
double Dim(const DLTensor& tensor, std::int32_t axis) {
  if (axis < 0) axis += tensor.ndim;
  return axis < 0 || axis >= tensor.ndim ? 1 : static_cast<double>(tensor.shape[axis]);
}

const AttributeValue* Find(const KernelImport& import, std::string_view name) {
  for (const Attribute& attribute : import.attributes) {
    if (attribute.name == name) return &attribute.value;
  }
  return nullptr;
}

double Integer(const KernelImport& import, std::string_view name, double otherwise) {
  const AttributeValue* value = Find(import, name);
  const auto* integer = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  return integer == nullptr ? otherwise : static_cast<double>(*integer);
}

// The product of a list of integers from `first` on; 0 if the attribute is no such list.
double Product(const KernelImport& import, std::string_view name, std::size_t first) {
  const AttributeValue* value = Find(import, name);
  const auto* list = value == nullptr ? nullptr : std::get_if<Array<std::int64_t>>(value);
  if (list == nullptr || list->size() <= first) return 0;
  double product = 1;
  for (std::size_t i = first; i < list->size(); ++i) product *= static_cast<double>((*list)[i]);
  return product;
}

// Weights of a convolution by entry of their first axis.
double WeightsByChannel(const KernelImport& import, const DLTensor& w) {
  // oneDNN's packed weights have their shape as an attribute.
  const double given = Product(import, "weights", 1);
  return given > 0 ? given : Elements(w) / Dim(w, 0);
}

// Products that one element of the output is the sum of, or 0 if the shapes do not tell.
double Depth(const KernelImport& import, std::string_view kind, const std::vector<const DLTensor*>& tensors) {
  const DLTensor &x = *tensors[0], &w = *tensors[1];
  if (kind == "conv" || kind == "conv_integer" || kind == "winograd") {
    // Channels are last where the window is an attribute, because packed weights have lost it.
    const double window = Product(import, "kernel_shape", 0);
    return window > 0 ? Dim(x, -1) * window : WeightsByChannel(import, w);
  }
  if (kind == "depthwise" || kind == "depthwise_integer") return Product(import, "kernel_shape", 0);
  if (kind == "matmul" || kind == "matmul_integer" || kind == "matmul_bytes" || kind == "dense")
    return Dim(x, -1);
  if (kind == "gemm") return Integer(import, "transA", 0) != 0 ? Dim(x, 0) : Dim(x, -1);
  return 0;
}

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
  const std::string_view name = import.name;
  if (tensors.size() < 3 || name.find(".shape.") != std::string_view::npos) return count;
  const std::string_view kind = name.substr(name.rfind('.') + 1);
  if (name == names::kPackedConvTranspose) {
    // Each element of the output is in one window.
    count.operations = 2 * Elements(*tensors.back()) * Dim(*tensors[0], -1);
  } else if (kind == "conv_transpose") {
    // Each input element is multiplied with the weights of its channel.
    count.operations = 2 * Elements(*tensors[0]) * WeightsByChannel(import, *tensors[1]);
  } else {
    count.operations = 2 * Elements(*tensors.back()) * Depth(import, kind, tensors);
  }
  return count;
}

}  // namespace rewire::tools
