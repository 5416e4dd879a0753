// SPDX-License-Identifier: Apache-2.0
//
// How much work a call of a kernel is, from its shapes and attributes. The compiler weighs with it what to
// run at once and what to compute when a program is loaded. `vm-run --report` compares the time of a call
// with what a processor can do. A kernel of a device or of another library does the same work as its
// counterpart here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/cost.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/signal.h"

namespace rewire::names {

// Dimensions of a tensor.
struct WorkShape {
  const std::int64_t* dims = nullptr;
  std::int32_t rank = 0;

  double Elements() const {
    double elements = 1;
    for (std::int32_t i = 0; i < rank; ++i) elements *= static_cast<double>(dims[i]);
    return elements;
  }
  // Dimension `axis`, from the end if it is negative; 1 if there is none.
  double Dim(std::int32_t axis) const {
    if (axis < 0) axis += rank;
    return axis < 0 || axis >= rank ? 1 : static_cast<double>(dims[axis]);
  }
};

struct Work {
  // Multiplications, each with an addition, of a convolution, product or recurrent layer: that the kernel
  // does, and that its plain form would do.
  double products = 0;
  double plain_products = 0;
  // Simple operations of other kernels.
  double operations = 0;
};

namespace internal {

// Null if no list has the kernel.
inline const Cost* FindCost(std::string_view kernel) {
  const Cost* found = nullptr;
  const auto visit = [&](const Cost& cost) {
    if (IsKernel(kernel, cost.kernel)) found = &cost;
  };
  for (const Cost& cost : kElementwiseCosts) visit(cost);
  for (const Cost& cost : kGeneratorCosts) visit(cost);
  for (const Cost& cost : kIndexingCosts) visit(cost);
  for (const Cost& cost : kMovementCosts) visit(cost);
  for (const Cost& cost : kNormalizationCosts) visit(cost);
  for (const Cost& cost : kQuantizationCosts) visit(cost);
  for (const Cost& cost : kReductionCosts) visit(cost);
  for (const Cost& cost : kSignalCosts) visit(cost);
  return found;
}

template <typename Is>
bool IsAny(const Is& is, std::initializer_list<const char*> kernels) {
  for (const char* kernel : kernels) {
    if (is(kernel)) return true;
  }
  return false;
}

}  // namespace internal

// Products of a call, 0 for kernels that are none. `attributes` has
//   double Product(std::string_view name, std::size_t first)  the product of a list of integers from `first`
//   on;
//                                                             0 if there is no such attribute
//   std::int64_t Int(std::string_view name, std::int64_t otherwise)
template <typename Attributes>
Work ProductsOf(std::string_view kernel, const Attributes& attributes, const WorkShape* inputs,
                std::size_t input_count, const WorkShape& output) {
  if (input_count < 2) return {};
  const WorkShape &x = inputs[0], &w = inputs[1];
  const double outputs = output.Elements();
  const auto plain = [](double products) { return Work{products, products, 0}; };
  const auto is = [&](std::string_view one) { return IsKernel(kernel, one); };
  const auto any = [&](std::initializer_list<const char*> kernels) { return internal::IsAny(is, kernels); };
  const double window = attributes.Product("kernel_shape", 0);
  // Weights for one entry of their first axis. oneDNN's packed weights have their shape as an attribute.
  const double given = attributes.Product("weights", 1);
  const double by_channel = given > 0 ? given : w.Elements() / (w.Dim(0) < 1 ? 1 : w.Dim(0));

  if (any({kConv, kConvInteger, kOneDnnConv})) return plain(outputs * by_channel);
  // Packed weights are padded, so the depth is that of the image, whose channels are last.
  const double depth = window > 0 ? x.Dim(-1) * window : by_channel;
  if (any({kPackedConv, kPackedConvInteger})) return plain(outputs * depth);
  // A tile of 4 x 4 elements of the output takes 6 x 6 products.
  if (is(kPackedWinograd)) return {outputs * x.Dim(-1) * 36 / 16, outputs * depth, 0};
  if (any({kPackedDepthwise, kPackedDepthwiseInteger})) return plain(outputs * window);
  if (is(kPackedSeparable)) return plain(outputs / output.Dim(-1) * x.Dim(-1) * (w.Dim(0) + output.Dim(-1)));
  // Each element of the output is in one window.
  if (is(kPackedConvTranspose)) return plain(outputs * x.Dim(-1));
  // Each element of the input is multiplied with the weights of its channel.
  if (any({kConvTranspose, kOneDnnConvTranspose})) return plain(x.Elements() * by_channel);
  if (is(kGemm)) return plain(outputs * x.Dim(attributes.Int("transA", 0) != 0 ? 0 : -1));
  if (any({kMatMul, kMatMulInteger, kDense, kPackedMatMul, kPackedMatMulInteger, kPackedMatMulBytes,
           kBlockedMatMul, kOneDnnMatMul}))
    return plain(outputs * x.Dim(-1));
  // Steps wait for each other, so the products do not tell what a processor could do.
  if (any({kRnn, kGru, kLstm, kLstmBytes}) && input_count > 2)
    return {x.Dim(0) * x.Dim(1) * (w.Elements() + inputs[2].Elements()), 0, 0};
  return {};
}

// The work of a call; nullopt if it does not follow from shapes. `elementwise`: the kernel's row has that
// trait.
template <typename Attributes>
std::optional<Work> WorkOf(std::string_view kernel, bool elementwise, const Attributes& attributes,
                           const WorkShape* inputs, std::size_t input_count, const WorkShape* outputs,
                           std::size_t output_count) {
  if (output_count == 0) return std::nullopt;
  Work work = ProductsOf(kernel, attributes, inputs, input_count, outputs[0]);
  if (work.products > 0) return work;
  double read = 0, written = 0;
  for (std::size_t i = 0; i < input_count; ++i)
    read = inputs[i].Elements() > read ? inputs[i].Elements() : read;
  for (std::size_t i = 0; i < output_count; ++i) written += outputs[i].Elements();
  double each = elementwise ? 1 : 0;
  if (const Cost* cost = internal::FindCost(kernel); cost != nullptr) {
    each = cost->operations;
  } else if (IsKernel(kernel, kMaxPool) || IsKernel(kernel, kAvgPool)) {
    const double window = attributes.Product("kernel_shape", 0);
    each = window > 0 ? window : 1;
  }
  if (each == 0) return std::nullopt;
  work.operations = each * (read > written ? read : written);
  return work;
}

}  // namespace rewire::names
