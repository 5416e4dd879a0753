// SPDX-License-Identifier: Apache-2.0
//
// Fuses x * (1 + erf(x / sqrt(2))) / 2, with its factors in any order. Exporters before opset 20 wrote Gelu
// in this way.
#include <cmath>
#include <optional>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

bool IsNear(std::optional<float> value, double expected) {
  return value && std::fabs(static_cast<double>(*value) - expected) < 1e-6;
}

// The factor that a multiplication or division by a scalar makes of `*value`, which becomes what is
// multiplied. `rounding`, if given, becomes that of the scalar.
std::optional<double> TakeScalar(const Edit& edit, Value** value, double* rounding = nullptr) {
  const Node* node = (*value)->producer;
  if (node == nullptr || node->inputs.size() != 2 || edit.UseCount(*value) != 1) return std::nullopt;
  for (std::size_t i : {0, 1}) {
    const std::optional<float> scalar = ScalarOf(node->inputs[1 - i]);
    if (!scalar) continue;
    if (node->kernel == "rewire.mul" || (node->kernel == "rewire.div" && i == 0)) {
      *value = node->inputs[i];
      if (rounding != nullptr) *rounding = RoundingOf(node->inputs[1 - i]);
      return node->kernel == "rewire.mul" ? *scalar : 1 / static_cast<double>(*scalar);
    }
  }
  return std::nullopt;
}

// x, when the value is 1 + erf(x / sqrt(2)).
Value* ErfOf(const Edit& edit, const Value* value) {
  const Node* sum = value->producer;
  if (sum == nullptr || sum->kernel != "rewire.add" || edit.UseCount(value) != 1) return nullptr;
  for (std::size_t i : {0, 1}) {
    const Node* erf = sum->inputs[i]->producer;
    if (!IsNear(ScalarOf(sum->inputs[1 - i]), 1) || erf == nullptr || erf->kernel != "rewire.erf") continue;
    Value* x = erf->inputs[0];
    double rounding = 0;
    const std::optional<double> factor = TakeScalar(edit, &x, &rounding);
    if (factor && std::fabs(*factor / std::sqrt(0.5) - 1) < 1.5e-6 + rounding) return x;
  }
  return nullptr;
}

// x, when the node computes its Gelu. The factor of a half may stand at the product or at either side of it.
Value* GeluOf(const Edit& edit, Value* result) {
  Value* product = result;
  double factor = 1;
  const Node* node = product->producer;
  if (node->inputs.size() != 2) return nullptr;
  if (ScalarOf(node->inputs[0]) || ScalarOf(node->inputs[1])) {
    // The uses of the result itself do not matter.
    const std::size_t i = ScalarOf(node->inputs[0]) ? 1 : 0;
    if (node->kernel != "rewire.mul" && !(node->kernel == "rewire.div" && i == 0)) return nullptr;
    const double scalar = static_cast<double>(*ScalarOf(node->inputs[1 - i]));
    factor = node->kernel == "rewire.mul" ? scalar : 1 / scalar;
    product = node->inputs[i];
    if (edit.UseCount(product) != 1) return nullptr;
  }
  const Node* mul = product->producer;
  if (mul == nullptr || mul->kernel != "rewire.mul" || mul->inputs.size() != 2) return nullptr;
  for (std::size_t i : {0, 1}) {
    double all = factor;
    Value* x = mul->inputs[i];
    Value* gate = mul->inputs[1 - i];
    if (const std::optional<double> scalar = TakeScalar(edit, &gate)) all *= *scalar;
    const Value* of_erf = ErfOf(edit, gate);
    if (of_erf == nullptr) continue;
    if (of_erf != x) {
      if (const std::optional<double> scalar = TakeScalar(edit, &x)) all *= *scalar;
    }
    if (of_erf == x && std::fabs(all - 0.5) < 1e-6) return x;
  }
  return nullptr;
}

}  // namespace

void FuseGelu(Graph* graph) {
  const Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (node->kind != NodeKind::kKernel || (node->kernel != "rewire.mul" && node->kernel != "rewire.div")) {
        continue;
      }
      Value* x = GeluOf(edit, node->outputs[0]);
      if (x == nullptr || !(x->type.dtype == kFloat32) ||
          ShapeText(x->type.dims) != ShapeText(node->outputs[0]->type.dims)) {
        continue;
      }
      node->kernel = "rewire.gelu";
      node->attributes.clear();
      node->inputs = {x};
    }
  });
  RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
