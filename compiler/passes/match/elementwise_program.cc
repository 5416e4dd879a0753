// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/match/elementwise_program.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/fused_operations.h"
#include "rewire/kernels/contract/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <unordered_set>

namespace rewire::compiler {
namespace {

constexpr std::int64_t kShortRun = 128;

// Null if rewire.fused cannot do the kernel's work.
const names::FusedForm* FormOf(const std::string& kernel) {
  const auto* found = std::find_if(std::begin(names::kFusedForms), std::end(names::kFusedForms),
                                   [&](const names::FusedForm& form) { return kernel == form.kernel; });
  return found == std::end(names::kFusedForms) ? nullptr : found;
}

// x to such a power is one product or two, which have no dimensions but those of x.
bool IsSmallPower(const Node& node) {
  if (node.kernel != names::kPow || node.inputs.size() != 2) return false;
  if (node.inputs[1]->type.rank() > node.inputs[0]->type.rank()) return false;
  const std::optional<float> exponent = ScalarOf(node.inputs[1]);
  return exponent && (*exponent == 2.0F || *exponent == 3.0F);
}

bool IsTanhGelu(const Node& node) {
  const Attribute* form = FindAttribute(node, "approximate");
  const auto* text = form == nullptr ? nullptr : std::get_if<std::string>(&form->value);
  return node.kernel == names::kGelu && text != nullptr && *text == "tanh";
}

bool IsPlainKernel(const Node& node) {
  return node.kind == NodeKind::kKernel && node.outputs.size() == 1 && !node.returns && node.flags == 0 &&
         node.extents.size() == 1 && node.extents[0].shape == nullptr && !node.in_place;
}

// An input that is not a scalar is repeated along other axes than the last, which is short.
bool HasShortRuns(const Node& node) {
  const Shape& dims = node.outputs[0]->type.dims;
  const std::span<Value* const> operands = OperandsOf(node);
  if (operands.size() < 2 || dims.size() < 2) return false;
  const std::optional<std::int64_t> last = dims.back().constant();
  if (!last || *last > kShortRun) return false;
  return std::any_of(operands.begin(), operands.end(), [&](const Value* input) {
    return !ScalarOf(input) && ShapeText(input->type.dims) != ShapeText(dims);
  });
}

// Such a number has the same digits for every locale.
std::string NumberText(float number) { return fmt::format("{:.9g}", number); }

bool IsBool(const Value* value) { return value->type.dtype == kBool8; }

}  // namespace

bool IsFusible(const Node& node, bool strict, bool halves) {
  if (!IsPlainKernel(node)) return false;
  const names::FusedForm* form = FormOf(node.kernel);
  if (form == nullptr && (strict || !IsSmallPower(node))) return false;
  const bool truths = form != nullptr && form->truths();
  // Between a float and a truth value.
  if (node.kernel == names::kCast && IsBool(node.inputs[0]) == IsBool(node.outputs[0])) return false;
  const auto fits = [&](const Value* value) {
    return value != nullptr && value->type.IsTensor() && value->type.ranked &&
           (value->type.dtype == kFloat32 || value->type.dtype == kBFloat16 ||
            (halves && value->type.dtype == kFloat16) || (truths && IsBool(value)));
  };
  return fits(node.outputs[0]) && std::all_of(node.inputs.begin(), node.inputs.end(), fits);
}

bool ConvertsBytes(const Node& node) {
  if (!IsPlainKernel(node) || !QuantizationOf(node)) return false;
  const Value* floats = node.kernel == names::kQuantizeLinear ? node.inputs[0] : node.outputs[0];
  return node.inputs[0]->type.ranked && floats->type.dtype == kFloat32;
}

std::span<Value* const> OperandsOf(const Node& node) {
  const bool converts = node.kernel == names::kQuantizeLinear || node.kernel == names::kDequantizeLinear;
  return {node.inputs.data(), converts ? 1 : node.inputs.size()};
}

bool IsSlowAlone(const Node& node) {
  const names::FusedForm* form = FormOf(node.kernel);
  const auto is_bf16 = [](const Value* value) { return value->type.dtype == kBFloat16; };
  if (is_bf16(node.outputs[0]) || std::any_of(node.inputs.begin(), node.inputs.end(), is_bf16)) return true;
  return (form != nullptr && form->slow_alone()) || IsTanhGelu(node) || IsSmallPower(node) ||
         HasShortRuns(node);
}

ElementwiseProgram::ElementwiseProgram(const Edit& edit, const std::vector<Node*>& nodes) {
  FindInputs(edit, nodes);
  for (const Node* node : nodes) {
    const std::size_t before = steps_;
    AddNode(*node);
    steps_of_nodes_.push_back(steps_ - before);
  }
}

void ElementwiseProgram::FindInputs(const Edit& edit, const std::vector<Node*>& nodes) {
  std::unordered_set<const Value*> made;
  std::unordered_map<const Value*, std::size_t> reads;
  std::vector<Value*> scalars;
  for (const Node* node : nodes) {
    made.insert(node->outputs[0]);
    for (Value* input : OperandsOf(*node)) {
      if (++reads[input] > 1 || made.contains(input)) continue;
      (ScalarOf(input) ? scalars : inputs_).push_back(input);
    }
  }
  const std::string dims = ShapeText(nodes.back()->outputs[0]->type.dims);
  const auto may_end = [&](const Value* value) {
    return value->producer != nullptr && value->type.dtype == nodes.back()->outputs[0]->type.dtype &&
           ShapeText(value->type.dims) == dims && edit.UseCount(value) == reads[value];
  };
  std::stable_partition(inputs_.begin(), inputs_.end(), may_end);
  // A number has no dimensions. Where those of a constant are needed, because the tensors have fewer or there
  // are none, the constant is a tensor too.
  const auto rank_of = [](const Value* value) { return value->type.rank(); };
  const auto less = [&](const Value* a, const Value* b) { return rank_of(a) < rank_of(b); };
  const auto tensor = std::max_element(inputs_.begin(), inputs_.end(), less);
  const auto scalar = std::max_element(scalars.begin(), scalars.end(), less);
  if (scalar != scalars.end() && (tensor == inputs_.end() || less(*tensor, *scalar))) {
    inputs_.push_back(*scalar);
    scalars.erase(scalar);
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) names_[inputs_[i]] = fmt::format("x{}", i);
  for (const Value* each : scalars) names_[each] = NumberText(*ScalarOf(each));
}

std::string ElementwiseProgram::OperandOf(const Value* value) { return names_.at(value); }

std::string ElementwiseProgram::Step(const std::string& operation, const std::vector<std::string>& operands) {
  text_ += fmt::format("{}{} {}", steps_ == 0 ? "" : "; ", operation, fmt::join(operands, " "));
  return fmt::format("r{}", steps_++);
}

void ElementwiseProgram::AddNode(const Node& node) {
  std::string& result = names_[node.outputs[0]];
  std::vector<std::string> operands;
  for (const Value* input : OperandsOf(node)) operands.push_back(OperandOf(input));
  if (const std::optional<Quantization> by = QuantizationOf(node)) {
    operands.push_back(NumberText(by->scale));
    operands.push_back(NumberText(static_cast<float>(by->zero)));
    result = Step(node.kernel == names::kQuantizeLinear ? "quantize" : "dequantize", operands);
    return;
  }
  if (IsSmallPower(node)) {
    const bool cube = *ScalarOf(node.inputs[1]) == 3.0F;
    const std::string square = Step("mul", {operands[0], operands[0]});
    result = cube ? Step("mul", {square, operands[0]}) : square;
    return;
  }
  const names::FusedForm& form = *FormOf(node.kernel);
  const NodeAttributes attributes(node);
  for (const contract::NumberAttribute& number : form.numbers) {
    if (number.name == nullptr) continue;
    operands.push_back(NumberText(static_cast<float>(number.Read(attributes))));
  }
  if (node.kernel == names::kCast) operands.emplace_back("0");
  if (node.kernel == names::kGreater || node.kernel == names::kGreaterEqual)
    std::swap(operands[0], operands[1]);
  result = Step(IsTanhGelu(node) ? "gelu_tanh" : form.operation, operands);
}

}  // namespace rewire::compiler
