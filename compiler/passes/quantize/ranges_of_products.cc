// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/ranges_of_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/parallel/node_time.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

// The values that products read, each once.
struct Reads {
  std::vector<std::optional<std::size_t>> of_product;
  std::vector<std::size_t> products;  // the first of each value

  explicit Reads(const std::vector<FloatProduct>& all) {
    std::unordered_map<const Value*, std::size_t> places;
    for (std::size_t i = 0; i < all.size(); ++i) {
      of_product.emplace_back();
      if (!all[i].reason.empty()) continue;
      const auto [found, added] = places.emplace(all[i].node->inputs[0], products.size());
      if (added) products.push_back(i);
      of_product.back() = found->second;
    }
  }
};

// The graph with what products read as its results.
Graph Watching(const Graph& graph, const Reads& reads) {
  Graph watching = graph.Copy();
  const std::vector<FloatProduct> products = FloatProducts(watching);
  watching.main.results.clear();
  watching.output_names.clear();
  for (const std::size_t product : reads.products) {
    watching.main.results.push_back(products[product].node->inputs[0]);
    watching.output_names.push_back(fmt::format("{}", watching.output_names.size()));
  }
  RemoveDeadCode(&watching);
  return watching;
}

}  // namespace

Result<ProductRanges> RangesOfProducts(const Graph& graph, const std::vector<FloatProduct>& products,
                                       CalibrationMethod method, const Calls& calls,
                                       const Building& building) {
  const Reads reads(products);
  ProductRanges made;
  made.limits.resize(products.size());
  made.work.resize(products.size(), 0);
  if (reads.products.empty()) return made;
  const Result<SampleProgram> program = SampleProgram::Make(Watching(graph, reads), building);
  if (!program) return Forward(program);
  std::vector<ActivationRange> ranges(reads.products.size());
  for (const bool count : {false, true}) {
    if (count && method == CalibrationMethod::kMinMax) break;
    for (const std::vector<rewire::Value>& inputs : calls) {
      const Result<std::vector<rewire::Value>> values = program->Run(inputs);
      if (!values) return Forward(values);
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const Span<const float> elements = SampleElements((*values)[i]);
        if (count) {
          ranges[i].Count(elements);
        } else {
          ranges[i].Extend(elements);
        }
      }
    }
  }
  std::vector<std::optional<ActivationRange::Limits>> limits;
  limits.reserve(ranges.size());
  for (const ActivationRange& range : ranges) limits.push_back(range.By(method));
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (!reads.of_product[i]) continue;
    const std::size_t read = *reads.of_product[i];
    if (limits[read] && HasScale(*limits[read])) made.limits[i] = limits[read];
    made.work[i] = ProductsOfInput(graph, *products[i].node) * static_cast<double>(ranges[read].elements());
  }
  return made;
}

}  // namespace rewire::compiler
