// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/attribute_rules.h"

#include <charconv>
#include <string>

#include "rewire/base/utf8.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"

namespace rewire::compiler {
namespace {

constexpr std::size_t kMostShownBytes = 64;  // of a stranger's name, in a message

std::string ValueText(const onnx::AttributeProto& attribute) {
  if (attribute.has_i()) return std::to_string(attribute.i());
  if (attribute.has_s()) return Printable(attribute.s(), kMostShownBytes);
  return "of another type";
}

}  // namespace

std::optional<AttributeRule> NextRule(std::string_view* rules) {
  if (rules->empty()) return std::nullopt;
  const std::size_t space = rules->find(' ');
  std::string_view text = rules->substr(0, space);
  rules->remove_prefix(space == std::string_view::npos ? rules->size() : space + 1);
  AttributeRule rule;
  if (text.front() == '~') {
    rule.is_always_read = false;
    text.remove_prefix(1);
  }
  const std::size_t mark = text.find_first_of("=<");
  rule.name = text.substr(0, mark);
  if (mark == std::string_view::npos) return rule;
  const std::string_view value = text.substr(mark + 1);
  if (text[mark] == '=') {
    rule.only = value;
    rule.is_always_read = false;
  } else {
    std::from_chars(value.data(), value.data() + value.size(), rule.before);
  }
  return rule;
}

std::optional<AttributeRule> FindRule(std::string_view rules, std::string_view name) {
  while (const std::optional<AttributeRule> rule = NextRule(&rules)) {
    if (rule->name == name || rule->name == kAnyAttribute) return rule;
  }
  return std::nullopt;
}

Status CheckAttributes(const Op& op, const Operator& row) {
  const auto& attributes = op.node().attribute();
  for (int i = 0; i < attributes.size(); ++i) {
    const std::string name = Printable(attributes[i].name(), kMostShownBytes);
    for (int k = 0; k < i; ++k) {
      if (attributes[k].name() == attributes[i].name())
        return op.Invalid("attribute '{}' is given twice", name);
    }
    const std::optional<AttributeRule> rule = FindRule(row.attributes, attributes[i].name());
    // Operator sets before 6 have this hint on operators that may overwrite an input.
    if (!rule && name == "consumed_inputs" && op.opset() < 6) continue;
    if (!rule) return op.Unsupported("attribute '{}' is not known", name);
    if (rule->before != 0 && op.opset() >= rule->before) {
      return op.Unsupported("attribute '{}' is not known from operator set {} on", name, rule->before);
    }
    // In the body of a function it may refer to an attribute that the call does not give.
    const onnx::AttributeProto* given = rule->only.empty() ? nullptr : op.Find(attributes[i].name());
    if (given != nullptr && ValueText(*given) != rule->only) {
      return op.Unsupported("attribute '{}' is {}, only {} is supported", name, ValueText(*given),
                            rule->only);
    }
  }
  return {};
}

Status CheckAllRead(const Op& op, const Operator& row) {
  for (const onnx::AttributeProto& attribute : op.node().attribute()) {
    const std::optional<AttributeRule> rule = FindRule(row.attributes, attribute.name());
    if (rule && rule->is_always_read && !op.HasRead(attribute)) {
      return op.Unsupported("attribute '{}' is not supported in this form of the operator", attribute.name());
    }
  }
  return {};
}

}  // namespace rewire::compiler
