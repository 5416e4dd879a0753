// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/equal_axes.h"

#include <unordered_map>

namespace rewire {
namespace {

std::string AxisText(const Function& function, EqualAxes::Axis axis) {
  return Format("input {} ({}), axis {}", axis.input, function.inputs[axis.input].name, axis.axis);
}

}  // namespace

Array<EqualAxes> FindEqualAxes(const Function& function) {
  Array<EqualAxes> pairs;
  std::unordered_map<std::uint32_t, EqualAxes::Axis> first_of;  // by symbol
  for (std::uint32_t input = 0; input < function.inputs.size(); ++input) {
    const TypeNode& type = function.inputs[input].type.nodes[0];
    if (type.kind != TypeKind::kTensor || type.rank == kUnknownRank) continue;
    for (std::uint32_t axis = 0; axis < type.dims.size(); ++axis) {
      if (!IsSymbol(type.dims[axis])) continue;
      const EqualAxes::Axis here = {input, axis};
      const auto [first, is_first] = first_of.try_emplace(SymbolOf(type.dims[axis]), here);
      if (!is_first) pairs.push_back({first->second, here});
    }
  }
  return pairs;
}

Status AxesDiffer(const Module& module, std::uint32_t function, const Array<EqualAxes>& pairs,
                  const RewireFFIAny* inputs) {
  const Function& called = module.functions[function];
  for (const EqualAxes& pair : pairs) {
    const std::int64_t size = SizeOfAxis(inputs, pair.first), other = SizeOfAxis(inputs, pair.other);
    if (size == other) continue;
    const Dim dim = called.inputs[pair.first.input].type.nodes[0].dims[pair.first.axis];
    return Fail(StatusCode::kInvalidArgument,
                "function {}: dimension {} is {} in {} and {} in {}; equal names need equal sizes",
                called.name, module.symbols[SymbolOf(dim)], size, AxisText(called, pair.first), other,
                AxisText(called, pair.other));
  }
  return {};
}

}  // namespace rewire
