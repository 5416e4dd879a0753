// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/parallel/node_time.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/kernels/contract/convolution.h"

namespace rewire::compiler {
namespace {

// Kernels split what is larger: simple work, and products (kernels/cpu/support/parallel.h and those that call
// it).
constexpr double kMostElements = 16384;
constexpr double kLeastSplitProducts = 262144;
// Times of a processor with vectors of 256 bits; the last one is what a call takes beside its work.
constexpr double kNanosecondsOfElement = 0.1;
constexpr double kProductsOfNanosecond = 40;
constexpr double kNanosecondsOfCall = 60;

// How many simple operations a kernel does for an element, by the last part of its name. Elementwise kernels
// that are not named do one.
struct Cost {
  std::string_view kernel;
  double operations;
};
constexpr std::array kCosts = {
    Cost{"acos", 8},
    Cost{"acosh", 8},
    Cost{"asin", 8},
    Cost{"asinh", 8},
    Cost{"atan", 8},
    Cost{"atanh", 8},
    Cost{"celu", 5},
    Cost{"cos", 8},
    Cost{"cosh", 8},
    Cost{"elu", 5},
    Cost{"erf", 8},
    Cost{"exp", 5},
    Cost{"gelu", 8},
    Cost{"log", 5},
    Cost{"mish", 8},
    Cost{"pow", 20},
    Cost{"selu", 5},
    Cost{"sigmoid", 5},
    Cost{"sin", 8},
    Cost{"sinh", 8},
    Cost{"softplus", 8},
    Cost{"sqrt", 3},
    Cost{"swish", 5},
    Cost{"tan", 8},
    Cost{"tanh", 6},
    Cost{"add_quantized", 4},
    Cost{"arange", 2},
    Cost{"batch_norm", 2},
    Cost{"cast_narrow", 4},
    Cost{"concat", 1},
    Cost{"copy", 1},
    Cost{"cumsum", 4},
    Cost{"dequantize_linear", 2},
    Cost{"dynamic_pad", 2},
    Cost{"dynamic_slice", 1},
    Cost{"expand", 1},
    Cost{"eye", 1},
    Cost{"gather", 1},
    Cost{"gather_elements", 4},
    Cost{"gather_nd", 2},
    Cost{"group_norm", 3},
    Cost{"layer_norm", 3},
    Cost{"log_softmax", 6},
    Cost{"map_bytes", 1},
    Cost{"mel_weight_matrix", 2},
    Cost{"one_hot", 2},
    Cost{"pad", 2},
    Cost{"prelu_quantized", 4},
    Cost{"quantize_linear", 4},
    Cost{"reduce_l1", 1},
    Cost{"reduce_l2", 1},
    Cost{"reduce_max", 1},
    Cost{"reduce_mean", 1},
    Cost{"reduce_min", 1},
    Cost{"reduce_sum", 1},
    Cost{"reduce_sum_square", 1},
    Cost{"requantize", 4},
    Cost{"rms_norm", 3},
    Cost{"scatter_elements", 4},
    Cost{"scatter_nd", 4},
    Cost{"slice", 1},
    Cost{"softmax", 6},
    Cost{"split", 1},
    Cost{"tile", 1},
    Cost{"transpose", 3},
    Cost{"trilu", 2},
    Cost{"window", 20},
};

std::optional<double> ElementsOf(const Value& value) {
  if (!value.type.IsTensor() || !value.type.ranked) return std::nullopt;
  const auto dims = ConstantDims(value.type.dims);
  if (!dims) return std::nullopt;
  double elements = 1;
  for (const std::int64_t dim : *dims) elements *= static_cast<double>(dim);
  return elements;
}

// Dimension `axis`, from the end if it is negative; 1 if there is none. All are known.
double Dim(const Value& value, int axis) {
  if (axis < 0) axis += value.type.rank();
  return axis < 0 || axis >= value.type.rank() ? 1 : static_cast<double>(*value.type.dims[axis].constant());
}

double WindowTapsOf(const Node& node) {
  const std::optional<std::vector<std::int64_t>> window = IntsAttribute(node, "kernel_shape");
  double taps = 1;
  if (window) {
    for (const std::int64_t side : *window) taps *= static_cast<double>(side);
  }
  return taps;
}

// Multiplications of a convolution, product or recurrent layer; 0 for other kernels.
double ProductsOf(const Node& node, std::string_view kind) {
  if (node.inputs.size() < 2) return 0;
  const Value &x = *node.inputs[0], &w = *node.inputs[1];
  const double outputs = *ElementsOf(*node.outputs[0]);
  const double by_channel = *ElementsOf(w) / std::max(1.0, Dim(w, 0));
  if (kind == "conv" || kind == "conv_integer") return outputs * by_channel;
  if (kind == "winograd") return outputs * Dim(w, -1) * 36 / 16;
  if (kind == "separable")
    return outputs / Dim(*node.outputs[0], -1) * Dim(x, -1) * (Dim(w, 0) + Dim(*node.outputs[0], -1));
  if (kind == "depthwise") return outputs * Dim(w, 0);
  if (kind == "depthwise_integer") return outputs * by_channel;
  // Packed weights have their input channels last, and padding.
  if (node.kernel == names::kPackedConvTranspose) return outputs * Dim(w, -1);
  if (kind == "conv_transpose") return *ElementsOf(x) * by_channel;
  if (kind == "matmul" || kind == "matmul_integer" || kind == "matmul_bytes" || kind == "dense" ||
      kind == "gemm")
    return outputs * std::max(Dim(x, -1), kind == "gemm" ? Dim(x, 0) : 0.0);
  if ((kind == "rnn" || kind == "gru" || kind == "lstm" || kind == "lstm_bytes") && node.inputs.size() > 2)
    return Dim(x, 0) * Dim(x, 1) * (*ElementsOf(w) + *ElementsOf(*node.inputs[2]));
  return 0;
}

// The work of a kernel.
struct Work {
  double nanoseconds;
  bool splits;  // among threads
};

std::optional<Work> WorkOf(const Graph& graph, const Node& node) {
  double written = 0, read = 0;
  for (const std::vector<Value*>* list : {&node.inputs, &node.outputs}) {
    for (const Value* value : *list) {
      const std::optional<double> elements = value == nullptr ? std::nullopt : ElementsOf(*value);
      if (!elements) return std::nullopt;
      if (list == &node.outputs) written += *elements;
      if (list == &node.inputs) read = std::max(read, *elements);
    }
  }
  if (node.outputs.empty()) return std::nullopt;
  const std::string_view name = node.kernel;
  const std::string_view kind = name.substr(name.rfind('.') + 1);
  const double products = ProductsOf(node, kind);
  if (products > 0) {
    return Work{kNanosecondsOfCall + products / kProductsOfNanosecond + written * kNanosecondsOfElement,
                products >= kLeastSplitProducts || written > kMostElements};
  }
  double operations = 0;
  const auto* cost =
      std::find_if(kCosts.begin(), kCosts.end(), [&](const Cost& one) { return one.kernel == kind; });
  if (cost != kCosts.end()) {
    operations = cost->operations;
  } else if (kind == "max_pool" || kind == "avg_pool") {
    operations = WindowTapsOf(node);
  } else if (IsElementwise(graph, node, node.inputs.size())) {
    operations = 1;
  } else {
    return std::nullopt;
  }
  const double largest = std::max(read, written);
  return Work{kNanosecondsOfCall + largest * operations * kNanosecondsOfElement, largest > kMostElements};
}

}  // namespace

std::optional<double> TimeOf(const Graph& graph, const Node& node) {
  const std::optional<Work> work = WorkOf(graph, node);
  return work ? std::optional<double>(work->nanoseconds) : std::nullopt;
}

std::optional<double> TimeOfSmall(const Graph& graph, const Node& node) {
  const std::optional<Work> work = WorkOf(graph, node);
  return work && !work->splits ? std::optional<double>(work->nanoseconds) : std::nullopt;
}

}  // namespace rewire::compiler
