// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/memory/parts.h"

#include <algorithm>

#include "rewire/base/array.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// The bytes of an element and of what one step along each axis passes over; false where not all is known.
bool Strides(const Value& value, Ints* dims, Ints* strides) {
  if (!value.type.IsTensor() || !value.type.ranked) return false;
  const std::optional<Ints> known = ConstantDims(value.type.dims);
  if (!known || !TensorBytes(value.type.dtype, *known)) return false;
  *dims = *known;
  strides->assign(known->size(), 0);
  auto stride = static_cast<std::int64_t>(ElementBytes(value.type.dtype));
  for (std::size_t i = known->size(); i-- > 0;) {
    (*strides)[i] = stride;
    stride *= (*known)[i];
  }
  return true;
}

// Tensors that lie one after the other in `whole`, if that is what they do.
std::vector<Part> Stretches(const Node& node, const Value* whole, const std::vector<Value*>& parts,
                            std::int64_t fallback_axis) {
  Ints dims, strides;
  if (!Strides(*whole, &dims, &strides)) return {};
  std::int64_t axis = IntAttribute(node, "axis", fallback_axis);
  if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
  const auto along = static_cast<std::size_t>(axis);
  if (axis < 0 || along >= dims.size()) return {};
  for (std::size_t i = 0; i < along; ++i) {
    if (dims[i] != 1) return {};
  }
  std::vector<Part> found;
  std::uint64_t offset = 0;
  for (const Value* part : parts) {
    Ints part_dims, part_strides;
    if (!Strides(*part, &part_dims, &part_strides) || part_dims.size() != dims.size()) return {};
    found.push_back({part, whole, offset});
    offset += static_cast<std::uint64_t>(part_dims[along] * strides[along]);
  }
  return found;
}

std::vector<Part> SliceStretch(const Node& node) {
  const Value* x = node.inputs[0];
  const Value* out = node.outputs[0];
  const std::optional<Ints> starts = IntsAttribute(node, "starts"), axes = IntsAttribute(node, "axes"),
                            steps = IntsAttribute(node, "steps");
  Ints dims, strides, out_dims, out_strides;
  if (!starts || !axes || !steps || !Strides(*x, &dims, &strides) ||
      !Strides(*out, &out_dims, &out_strides) || out_dims.size() != dims.size()) {
    return {};
  }
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const std::int64_t axis =
        (*axes)[i] < 0 ? (*axes)[i] + static_cast<std::int64_t>(dims.size()) : (*axes)[i];
    const auto along = static_cast<std::size_t>(axis);
    if ((*steps)[i] != 1) return {};
    const std::int64_t start = (*starts)[i] < 0 ? (*starts)[i] + dims[along] : (*starts)[i];
    offset += static_cast<std::uint64_t>(std::clamp<std::int64_t>(start, 0, dims[along]) * strides[along]);
  }
  // Behind the first axis of which more than one element is taken, all are.
  std::size_t outermost = 0;
  while (outermost < dims.size() && out_dims[outermost] == 1) ++outermost;
  for (std::size_t i = outermost + 1; i < dims.size(); ++i) {
    if (out_dims[i] != dims[i]) return {};
  }
  return {{out, x, offset}};
}

}  // namespace

std::vector<Part> PartsOf(const Node& node) {
  if (node.kind != NodeKind::kKernel) return {};
  if (node.kernel == names::kConcat) return Stretches(node, node.outputs[0], node.inputs, 0);
  if (node.kernel == names::kSplit) return Stretches(node, node.inputs[0], node.outputs, 0);
  if (node.kernel == names::kSlice) return SliceStretch(node);
  return {};
}

}  // namespace rewire::compiler
