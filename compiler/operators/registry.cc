// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/registry.h"

#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/operators/attribute_rules.h"

namespace rewire::compiler {
namespace {

constexpr const char kTrainingDomain[] = "ai.onnx.preview.training";

using Table = std::unordered_map<std::string_view, std::vector<const Operator*>>;

const Table& Operators() {
  static const Table kTable = [] {
    Table table;
    for (const std::span<const Operator> family : {
             ElementwiseOperators(),
             ShapeOperators(),
             ProductOperators(),
             ConvolutionOperators(),
             ReductionOperators(),
             NormalizationOperators(),
             MovementOperators(),
             IndexingOperators(),
             LossOperators(),
             RecurrentOperators(),
             QuantizationOperators(),
             VisionOperators(),
             GeneratorOperators(),
             TrainingOperators(),
             ControlFlowOperators(),
             SequenceOperators(),
             SignalOperators(),
         }) {
      for (const Operator& row : family) table[row.type].push_back(&row);
    }
    return table;
  }();
  return kTable;
}

Status CheckInputs(const Op& op, const Operator& row) {
  if (op.inputs() < row.least_inputs || op.inputs() > row.most_inputs) {
    return op.Invalid("it has {} inputs, expected at least {}{}", op.inputs(), row.least_inputs,
                      row.most_inputs == kAnyNumber ? "" : fmt::format(", at most {}", row.most_inputs));
  }
  for (int i = 0; i < op.inputs(); ++i) {
    const Value* input = op.in(i);
    if (input == nullptr) {
      // Where any number may follow, they all mean the same.
      const bool needed = i < row.least_inputs || row.most_inputs == kAnyNumber;
      if (needed && (row.flags & kMayLack) == 0) return op.Invalid("input {} is missing", i);
      continue;
    }
    if ((row.flags & kAnyKind) != 0) continue;
    if (!input->type.IsTensor()) return op.Invalid("input {} is a {}", i, TypeText(input->type));
    if ((row.flags & kAnyRank) == 0 && !input->type.ranked) {
      return op.Unsupported("the rank of input {}, '{}', is not known; fixing dimensions (--dim) may show it",
                            i, input->name);
    }
  }
  return {};
}

}  // namespace

Result<const Operator*> RowOf(const Op& op) {
  const bool training = op.domain() == kTrainingDomain;
  if (!op.domain().empty() && !training) {
    return op.Unsupported("no operators of domain '{}' are known", op.domain());
  }
  const int newest = training ? kNewestTrainingOpset : kNewestOpset;
  if (op.opset() > newest) {
    return op.Unsupported("operator set {} is newer than {}, the newest that is known", op.opset(), newest);
  }
  const auto found = Operators().find(op.type());
  if (found == Operators().end()) return op.Unsupported("the operator is not known");
  for (const Operator* row : found->second) {
    if (row->since > op.opset() || (row->until != 0 && row->until < op.opset())) continue;
    if (Status known = CheckAttributes(op, *row); !known) return Forward(known);
    return row;
  }
  return op.Unsupported("not known in this version of the operator set");
}

Status LowerOperator(Op* op) {
  const Result<const Operator*> row = RowOf(*op);
  if (!row) return Forward(row);
  if (Status checked = CheckInputs(*op, **row); !checked) return checked;
  if (Status lowered = (*row)->lower(*op, **row); !lowered) return lowered;
  if (!op->failure()) return op->failure();
  return CheckAllRead(*op, **row);
}

std::vector<const Operator*> AllOperators() {
  std::vector<const Operator*> rows;
  for (const auto& [type, versions] : Operators()) rows.insert(rows.end(), versions.begin(), versions.end());
  return rows;
}

}  // namespace rewire::compiler
