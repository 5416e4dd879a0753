// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/parallel/node_time.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/kernels/contract/work.h"

namespace rewire::compiler {
namespace {

// Kernels split what is larger: simple work, and products (kernels/cpu/support/parallel.h and those that call
// it).
constexpr double kMostElements = 16384;
constexpr double kLeastSplitProducts = 262144;
// Figures of a processor with vectors of 256 bits. The last one is what a call takes beside its work.
constexpr double kNanosecondsOfElement = 0.1;
constexpr double kProductsOfNanosecond = 40;
constexpr double kNanosecondsOfCall = 60;
// An open dimension, where only the ratio of sizes counts.
constexpr std::int64_t kUsualSize = 64;

// A node's attributes, as names::WorkOf reads them.
struct NodeAttributes {
  const Node& node;

  double Product(std::string_view name, std::size_t first) const {
    const std::optional<std::vector<std::int64_t>> list = IntsAttribute(node, std::string(name));
    if (!list || list->size() <= first) return 0;
    double product = 1;
    for (std::size_t i = first; i < list->size(); ++i) product *= static_cast<double>((*list)[i]);
    return product;
  }
  std::int64_t Int(std::string_view name, std::int64_t otherwise) const {
    return IntAttribute(node, std::string(name), otherwise);
  }
};

// The shapes of values that all have one.
class KnownShapes {
 public:
  // False if a shape is not known. Open dimensions count as `open`, or are not known if that is missing.
  bool Read(const std::vector<Value*>& values, std::optional<std::int64_t> open = std::nullopt) {
    dims_.reserve(values.size());
    for (const Value* value : values) {
      std::vector<std::int64_t>& dims = dims_.emplace_back();
      if (value == nullptr) continue;  // an argument that is left out
      if (!value->type.IsTensor() || !value->type.ranked) return false;
      for (const DimExpr& dim : value->type.dims) {
        std::optional<std::int64_t> size = dim.constant();
        if (!size && open)
          size = dim.Bounds([&](const std::string&) { return Interval{*open, *open}; }).least;
        if (!size) return false;
        dims.push_back(*size);
      }
    }
    for (const auto& dims : dims_) shapes_.push_back({dims.data(), static_cast<std::int32_t>(dims.size())});
    return true;
  }
  const std::vector<names::WorkShape>& shapes() const { return shapes_; }
  // The elements of all.
  double Elements() const {
    double elements = 0;
    for (const names::WorkShape& shape : shapes_) elements += shape.Elements();
    return elements;
  }
  double MostElements() const {
    double most = 0;
    for (const names::WorkShape& shape : shapes_) most = std::max(most, shape.Elements());
    return most;
  }

 private:
  std::vector<std::vector<std::int64_t>> dims_;
  std::vector<names::WorkShape> shapes_;
};

struct Time {
  double nanoseconds;
  bool splits;  // among threads
};

std::optional<Time> Estimate(const Graph& graph, const Node& node) {
  KnownShapes inputs, outputs;
  if (!inputs.Read(node.inputs) || !outputs.Read(node.outputs)) return std::nullopt;
  const std::optional<names::Work> work = names::WorkOf(
      node.kernel, IsElementwise(graph, node, node.inputs.size()), NodeAttributes{node},
      inputs.shapes().data(), inputs.shapes().size(), outputs.shapes().data(), outputs.shapes().size());
  if (!work) return std::nullopt;
  const double written = outputs.Elements();
  if (work->products > 0) {
    return Time{kNanosecondsOfCall + work->products / kProductsOfNanosecond + written * kNanosecondsOfElement,
                work->products >= kLeastSplitProducts || written > kMostElements};
  }
  return Time{kNanosecondsOfCall + work->operations * kNanosecondsOfElement,
              std::max(inputs.MostElements(), written) > kMostElements};
}

}  // namespace

double ProductsOfInput(const Node& node) {
  KnownShapes inputs, outputs;
  if (!inputs.Read(node.inputs, kUsualSize) || !outputs.Read(node.outputs, kUsualSize)) return 0;
  if (inputs.shapes().empty() || outputs.shapes().empty()) return 0;
  const names::Work work = names::ProductsOf(node.kernel, NodeAttributes{node}, inputs.shapes().data(),
                                             inputs.shapes().size(), outputs.shapes().front());
  return work.products / std::max(1.0, inputs.shapes().front().Elements());
}

std::optional<double> TimeOf(const Graph& graph, const Node& node) {
  const std::optional<Time> time = Estimate(graph, node);
  return time ? std::optional<double>(time->nanoseconds) : std::nullopt;
}

std::optional<double> TimeOfSmall(const Graph& graph, const Node& node) {
  const std::optional<Time> time = Estimate(graph, node);
  return time && !time->splits ? std::optional<double>(time->nanoseconds) : std::nullopt;
}

}  // namespace rewire::compiler
