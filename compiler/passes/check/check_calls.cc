// SPDX-License-Identifier: Apache-2.0
//
// Whether calls fit the rows of their kernels: attributes, number and dtypes of arguments.
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "rewire/base/array.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/check/check_graph.h"
#include "rewire/compiler/passes/check/checks.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::compiler {
namespace {

class Hash {
 public:
  template <typename T>
  void Add(const T& value) {
    sum_ = (sum_ ^ std::hash<T>()(value)) * 0x100000001b3U;
  }
  void Add(const Value* value) {
    Add(value != nullptr);
    if (value == nullptr) return;
    Add(static_cast<int>(value->type.kind));
    Add(static_cast<int>(value->type.dtype.code));
    Add(static_cast<int>(value->type.dtype.bits));
    Add(value->IsConstant() && value->constant->bytes.view.empty());
  }
  void operator()(std::int64_t value) { Add(value); }
  void operator()(double value) { Add(value); }
  void operator()(const std::string& value) { Add(value); }
  template <typename T>
  void operator()(const Array<T>& values) {
    for (const T& value : values) Add(value);
    Add(values.size());
  }
  std::size_t sum() const { return sum_; }

 private:
  std::size_t sum_ = 0xcbf29ce484222325U;
};

// Hashes all that the check of a call looks at.
std::size_t HashOf(const Node& node) {
  Hash hash;
  hash.Add(node.kernel);
  hash.Add(node.flags);
  hash.Add(node.returns);
  for (const Attribute& attribute : node.attributes) {
    hash.Add(attribute.name);
    std::visit(hash, attribute.value);
  }
  for (const Value* input : node.inputs) hash.Add(input);
  hash.Add(node.inputs.size());
  for (const Value* output : node.outputs) hash.Add(output);
  return hash.sum();
}

}  // namespace

const KernelTraits& GraphCheck::TraitsOf(const Graph& graph, const std::string& kernel) {
  if (graph.kernels->Row(kernel) != nullptr) return *graph.kernels;
  if (of_passes_ == nullptr) {
    KernelSet kernels;
    for (const Pass& pass : Passes()) {
      if (pass.library != nullptr) (void)kernels.AddLibrary(pass.library);
    }
    of_passes_ = std::make_shared<const KernelTraits>(std::move(kernels));
  }
  return *of_passes_;
}

Status GraphCheck::CheckCalls(const Graph& graph, const Block& block) {
  if (graph.kernels == nullptr) return {};
  return ForEachNode(block, [&](const Node& node) -> Status {
    if (node.kind != NodeKind::kKernel || !names::IsStock(node.kernel)) return {};
    const std::size_t hash = HashOf(node);
    const auto [place, added] = calls_.try_emplace(&node, hash);
    if (!added && place->second == hash) return {};
    place->second = hash;
    const KernelTraits& kernels = TraitsOf(graph, node.kernel);
    const RewireKernelRow* row = kernels.Row(node.kernel);
    if (row == nullptr) {
      // Models may be compiled where a kernel library is missing.
      if (first_) missing_.insert(node.kernel);
      // The split over ranks makes calls of collectives.
      if (missing_.contains(node.kernel) || names::IsCollective(node.kernel)) return {};
      return Broken(&node, nullptr, "a kernel of the stock libraries", "'" + node.kernel + "'");
    }
    if (node.returns != ((row->traits & REWIRE_KERNEL_RETURNS) != 0))
      return Broken(&node, nullptr,
                    node.returns ? "outputs that are allocated" : "an output that is returned",
                    node.returns ? "one that is returned" : "one that is allocated");
    // Kernels for packed weights take bf16 beside f32.
    if (const Status fits = kernels.Check(node, !graph.bf16); !fits)
      return Broken(&node, nullptr, "a call that fits the kernel's row", fits.error().message());
    return {};
  });
}

}  // namespace rewire::compiler
