// SPDX-License-Identifier: Apache-2.0
//
// Fuses x * (1 + erf(x / sqrt(2))) / 2, with its factors in any order. Exporters before opset 20 wrote Gelu
// in this way. The same for its approximation x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/sources.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

bool IsNear(std::optional<float> value, double expected) {
  return value && std::fabs(static_cast<double>(*value) - expected) < 1e-6;
}

// x, when the value is 1 + erf(x / sqrt(2)).
Value* ErfOf(const Edit& edit, const Value* value) {
  const Node* sum = value->producer;
  if (sum == nullptr || sum->kernel != names::kAdd || edit.UseCount(value) != 1) return nullptr;
  for (std::size_t i : {0, 1}) {
    const Node* erf = sum->inputs[i]->producer;
    if (!IsNear(ScalarOf(sum->inputs[1 - i]), 1) || erf == nullptr || erf->kernel != names::kErf) continue;
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
    if (node->kernel != names::kMul && !(node->kernel == names::kDiv && i == 0)) return nullptr;
    const double scalar = static_cast<double>(*ScalarOf(node->inputs[1 - i]));
    factor = node->kernel == names::kMul ? scalar : 1 / scalar;
    product = node->inputs[i];
    if (edit.UseCount(product) != 1) return nullptr;
  }
  const Node* mul = product->producer;
  if (mul == nullptr || mul->kernel != names::kMul || mul->inputs.size() != 2) return nullptr;
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

// A product as a scalar and the other factors.
struct ScaledProduct {
  double scalar = 1;
  std::vector<Value*> factors;
};

// Takes apart products, divisions by scalars, squares and cubes that nothing else reads. `*depth` limits how
// many.
void TakeApart(const Edit& edit, Value* value, int* depth, ScaledProduct* product, bool is_root = false) {
  const Node* node = value->producer;
  const bool inside = is_root || edit.UseCount(value) == 1;
  if (node == nullptr || !inside || node->inputs.size() != 2 || --*depth < 0) {
    product->factors.push_back(value);
    return;
  }
  const std::optional<float> left = ScalarOf(node->inputs[0]), right = ScalarOf(node->inputs[1]);
  if (node->kernel == names::kMul) {
    for (std::size_t i : {0, 1}) {
      if (const std::optional<float> scalar = i == 0 ? left : right)
        product->scalar *= static_cast<double>(*scalar);
      else
        TakeApart(edit, node->inputs[i], depth, product);
    }
  } else if (node->kernel == names::kDiv && right) {
    product->scalar /= static_cast<double>(*right);
    TakeApart(edit, node->inputs[0], depth, product);
  } else if (node->kernel == names::kPow && (right == 2.0F || right == 3.0F)) {
    product->factors.insert(product->factors.end(), right == 2.0F ? 2 : 3, node->inputs[0]);
  } else {
    product->factors.push_back(value);
  }
}

ScaledProduct ProductOf(const Edit& edit, Value* value, bool is_root = false) {
  ScaledProduct product;
  int depth = 6;
  TakeApart(edit, value, &depth, &product, is_root);
  return product;
}

// The input of the only user `kernel` of its result; null for anything else.
Value* InputOf(const Edit& edit, const Value* value, const char* kernel) {
  const Node* node = value->producer;
  const bool is = node != nullptr && node->kernel == kernel && edit.UseCount(value) == 1;
  return is ? node->inputs[0] : nullptr;
}

bool IsClose(double value, double expected) { return std::fabs(value / expected - 1) < 1e-5; }

// Whether the value is sqrt(2 / pi) (x + 0.044715 x^3).
bool IsTanhArgument(const Edit& edit, Value* value, const Value* x) {
  const ScaledProduct scaled = ProductOf(edit, value);
  if (scaled.factors.size() != 1 || !IsClose(scaled.scalar, 0.7978845608028654)) return false;
  const Node* sum = scaled.factors[0]->producer;
  if (sum == nullptr || sum->kernel != names::kAdd || edit.UseCount(scaled.factors[0]) != 1) return false;
  for (std::size_t i : {0, 1}) {
    if (sum->inputs[i] != x) continue;
    const ScaledProduct cube = ProductOf(edit, sum->inputs[1 - i]);
    if (IsClose(cube.scalar, 0.044715) && cube.factors == std::vector<Value*>(3, sum->inputs[i])) return true;
  }
  return false;
}

// x, when the node computes the approximation of its Gelu.
Value* TanhGeluOf(const Edit& edit, Value* result) {
  const ScaledProduct product = ProductOf(edit, result, true);
  if (product.factors.size() != 2 || !IsClose(product.scalar, 0.5)) return nullptr;
  for (std::size_t i : {0, 1}) {
    Value* x = product.factors[i];
    const Value* gate = product.factors[1 - i];
    const Node* sum = gate->producer;
    if (sum == nullptr || sum->kernel != names::kAdd || edit.UseCount(gate) != 1) continue;
    for (std::size_t k : {0, 1}) {
      if (!IsNear(ScalarOf(sum->inputs[1 - k]), 1)) continue;
      Value* argument = InputOf(edit, sum->inputs[k], names::kTanh);
      if (argument != nullptr && IsTanhArgument(edit, argument, x)) return x;
    }
  }
  return nullptr;
}

}  // namespace

void FuseGelu(Graph* graph) {
  const Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (node->kind != NodeKind::kKernel || (node->kernel != names::kMul && node->kernel != names::kDiv)) {
        continue;
      }
      Value* x = GeluOf(edit, node->outputs[0]);
      const bool by_tanh = x == nullptr;
      if (by_tanh) x = TanhGeluOf(edit, node->outputs[0]);
      if (x == nullptr || !(x->type.dtype == kFloat32) ||
          ShapeText(x->type.dims) != ShapeText(node->outputs[0]->type.dims)) {
        continue;
      }
      node->kernel = names::kGelu;
      node->attributes.clear();
      if (by_tanh) node->attributes = {{"approximate", std::string("tanh")}};
      AddSourcesBehind(node, {x});
      node->inputs = {x};
    }
  });
  RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
