// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/match/movement.h"

#include <string>
#include <variant>

#include "rewire/compiler/passes/edit.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/vision.h"

namespace rewire::compiler {
namespace {

// Whether a resize takes the nearest element alone. It has numbers of its own outside of a cropped image.
bool IsNearest(const Node& resize) {
  const auto has = [&](const char* name, const char* value) {
    const Attribute* found = FindAttribute(resize, name);
    const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
    return text != nullptr && *text == value;
  };
  const bool nearest = FindAttribute(resize, "mode") == nullptr || has("mode", "nearest");
  return nearest && !has("coordinate_transformation_mode", "tf_crop_and_resize");
}

}  // namespace

std::size_t MovedInputs(const Node& node) {
  if (node.kind == NodeKind::kReshape) return 1;
  if (node.kind != NodeKind::kKernel) return 0;
  if (node.kernel == names::kConcat) return node.inputs.size();
  if (node.kernel == names::kMaxPool) return node.outputs.size() == 1 ? 1 : 0;
  if (node.kernel == names::kResize) return IsNearest(node) ? 1 : 0;
  return names::OnlyMoves(node.kernel) ? 1 : 0;
}

}  // namespace rewire::compiler
