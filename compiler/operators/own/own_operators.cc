// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/own_operators.h"

#include "rewire/compiler/import/model_file.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/compiler/operators/attribute_rules.h"
#include "rewire/compiler/operators/own/own_node.h"
#include "rewire/compiler/operators/own/own_schema.h"

namespace rewire::compiler {
namespace {

Status LowerOwnOperator(Op& op, const Operator& /*row*/) {
  const OwnOperator* own = op.lowering().options().own_operators->Find(op.domain(), op.type());
  return LowerOwnNode(&op, own->schema);
}

}  // namespace

Result<OwnOperators> OwnOperators::Make(const std::vector<OperatorSchema>& schemas) {
  OwnOperators made;
  for (const OperatorSchema& schema : schemas) {
    if (Status checked = CheckSchema(schema); !checked) return Forward(checked);
    OwnOperator& own = made.operators_.emplace_back();
    own.schema = schema;
    own.schema.domain = DomainOf(schema.domain);
    if (schema.kernel.empty()) own.schema.kernel = schema.domain + "." + schema.name;
    for (const OperatorSchema::Attribute& attribute : schema.attributes)
      own.attributes += (own.attributes.empty() ? "" : " ") + attribute.name;
    if (schema.attributes_as == OperatorSchema::AttributesAs::kNode) own.attributes = kAnyAttribute;
    int least = 0;
    // A kernel that returns its outputs does not need the ranks of inputs whose shape the schema leaves open.
    bool any_number = false, any_rank = schema.returns;
    for (std::size_t i = 0; i < schema.inputs.size(); ++i) {
      const OperatorSchema::Input& input = schema.inputs[i];
      if (!input.optional && !input.variadic) least = static_cast<int>(i) + 1;
      any_number = any_number || input.variadic;
      any_rank = any_rank && !input.shape;
    }
    own.row = {own.schema.name.c_str(),
               1,
               0,
               least,
               any_number ? kAnyNumber : static_cast<int>(schema.inputs.size()),
               own.attributes.c_str(),
               LowerOwnOperator,
               nullptr,
               static_cast<std::uint8_t>(kMayLack | kTakesStrings | (any_rank ? kAnyRank : kNeedsRanks))};
    made.by_name_.insert_or_assign({own.schema.domain, own.schema.name}, &own);
  }
  return made;
}

const OwnOperator* OwnOperators::Find(const std::string& domain, const std::string& name) const {
  const auto found = by_name_.find({domain, name});
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace rewire::compiler
