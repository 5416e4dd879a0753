// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/registry.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewire/base/near_names.h"
#include "rewire/compiler/lower/own_operators.h"
#include "rewire/compiler/operators/attribute_rules.h"
#include "rewire/compiler/operators/host_function.h"
#include "rewire/compiler/operators/tflite_operators.h"

namespace rewire::compiler {
namespace {

// A domain of operators, with the newest version of its operator set that the rows follow.
struct Domain {
  const char* name;
  int newest;
  std::vector<std::span<const Operator>> families;
};

const std::vector<Domain>& Domains() {
  static const std::vector<Domain> kDomains = {
      {"",
       kNewestOpset,
       {
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
           ControlFlowOperators(),
           SequenceOperators(),
           SignalOperators(),
           AttentionOperators(),
           StringOperators(),
       }},
      {"ai.onnx.ml",
       5,
       {MachineLearningOperators(), CategoryOperators(), TreeOperators(), SupportVectorOperators()}},
      {"com.microsoft",
       1,
       {MicrosoftOperators(), MicrosoftAttentionOperators(), ContribQuantizationOperators(),
        ContribGatherOperators()}},
      {"ai.onnx.preview", 1, {PreviewOperators()}},
      {"ai.onnx.preview.training", 1, {TrainingOperators()}},
      {"tflite",
       1,
       {TfliteProductOperators(), TfliteMovementOperators(), TfliteActivationOperators(),
        TfliteArithmeticOperators()}},
  };
  return kDomains;
}

using Table = std::unordered_map<std::string_view, std::vector<const Operator*>>;

// The rows of a domain by the operator's name.
const Table& OperatorsOf(const Domain& domain) {
  static const std::vector<Table> kTables = [] {
    std::vector<Table> tables;
    for (const Domain& each : Domains()) {
      Table& table = tables.emplace_back();
      for (const std::span<const Operator> family : each.families) {
        for (const Operator& row : family) table[row.type].push_back(&row);
      }
    }
    return tables;
  }();
  return kTables[static_cast<std::size_t>(&domain - Domains().data())];
}

Status CheckInputs(Op& op, const Operator& row) {
  if (op.inputs() < row.least_inputs || op.inputs() > row.most_inputs) {
    return op.Invalid("it has {} inputs, expected at least {}{}", op.inputs(), row.least_inputs,
                      row.most_inputs == kAnyNumber ? "" : fmt::format(", at most {}", row.most_inputs));
  }
  for (int i = 0; i < op.inputs(); ++i) {
    const Value* input = op.in(i);
    if (input == nullptr) {
      // All inputs mean the same if any number may follow.
      const bool needed = i < row.least_inputs || row.most_inputs == kAnyNumber;
      if (needed && (row.flags & kMayLack) == 0) return op.Invalid("input {} is missing", i);
      continue;
    }
    const bool may_be_strings =
        (row.flags & kTakesStrings) != 0 || ((row.flags & kMovesStrings) != 0 && i == 0);
    if (!may_be_strings && op.lowering().strings().Has(input))
      return op.Unsupported("input {}, '{}', is strings", i, op.node().input(i));
    if ((row.flags & kAnyKind) != 0) continue;
    if (!input->type.IsTensor()) return op.Invalid("input {} is a {}", i, TypeText(input->type));
    if ((row.flags & kAnyRank) == 0 && !input->type.ranked) {
      return op.Unsupported("the rank of input {}, '{}', is not known; fixing dimensions (--dim) may show it",
                            i, input->name);
    }
  }
  return {};
}

// The error ends with this if no operator has a name that is near.
constexpr const char kHowToAdd[] =
    "; docs/operators.md lists those that are, docs/own-operators.md says how to add one";

}  // namespace

Result<const Operator*> RowOf(const Op& op) {
  const OwnOperators* own_operators = op.lowering().options().own_operators;
  if (const OwnOperator* own =
          own_operators == nullptr ? nullptr : own_operators->Find(op.domain(), op.type())) {
    if (Status known = CheckAttributes(op, own->row); !known) return Forward(known);
    return &own->row;
  }
  if (op.domain() == kHostDomain) {
    if (Status known = CheckAttributes(op, HostFunction()); !known) return Forward(known);
    return &HostFunction();
  }
  const auto domain = std::find_if(Domains().begin(), Domains().end(),
                                   [&](const Domain& each) { return op.domain() == each.name; });
  if (domain == Domains().end())
    return op.Unsupported("no operators of domain '{}' are known; {}", op.domain(), kHowToOwn);
  if (op.opset() > domain->newest) {
    return op.Unsupported("operator set {} is newer than {}, the newest that is known", op.opset(),
                          domain->newest);
  }
  const Table& operators = OperatorsOf(*domain);
  const auto found = operators.find(op.type());
  if (found == operators.end()) {
    std::vector<std::string> known;
    for (const auto& [name, rows] : operators) known.emplace_back(name);
    const std::string near = DidYouMean(op.type(), {known.data(), known.size()});
    return op.Unsupported("the operator is not known{}", near.empty() ? kHowToAdd : near);
  }
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
  if (((*row)->flags & kMovesStrings) != 0) {
    for (int i = 0; i < op->outputs(); ++i) {
      if (op->Wants(i)) op->lowering().strings().Copy(op->in(0), op->scope().Find(op->node().output(i)));
    }
  }
  return CheckAllRead(*op, **row);
}

std::uint8_t FlagsOf(std::string_view type) {
  const Table& operators = OperatorsOf(Domains().front());
  const auto found = operators.find(type);
  if (found == operators.end()) return 0;
  std::uint8_t flags = 0xff;
  for (const Operator* row : found->second) flags &= row->flags;
  return flags;
}

std::vector<DomainOperator> AllOperators() {
  std::vector<DomainOperator> rows;
  for (const Domain& domain : Domains()) {
    for (const std::span<const Operator> family : domain.families) {
      for (const Operator& row : family) rows.push_back({domain.name, &row});
    }
  }
  return rows;
}

}  // namespace rewire::compiler
