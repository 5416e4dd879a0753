// SPDX-License-Identifier: Apache-2.0
// An operator's row says by these rules which attributes its nodes may have.
//
// The rules stand in one string, between spaces:
//
//   axis          the operator's function reads it, whenever it is given
//   axes<13       the same, before operator set 13; from there on it must not be given
//   block_size=0  only this value is supported
//   ~seed         it may change nothing: the function may leave it unread
//   *             alone: any attribute may be given, and the function reads all of them
#pragma once

#include <optional>
#include <string_view>

#include "rewire/base/status.h"

namespace rewire::compiler {

class Op;
struct Operator;

inline constexpr char kAnyAttribute[] = "*";

struct AttributeRule {
  std::string_view name;
  std::string_view only;  // the only supported value; empty: any
  int before = 0;         // the operator set from which on the attribute is not allowed; 0: none
  bool is_always_read = true;
};

// Removes the first rule from `rules` and returns it; nullopt at the end.
std::optional<AttributeRule> NextRule(std::string_view* rules);
std::optional<AttributeRule> FindRule(std::string_view rules, std::string_view name);

// Errors: kUnsupported for an attribute that the row does not know, or not with this value; kInvalidFile for
// one that is given twice.
Status CheckAttributes(const Op& op, const Operator& row);

// Called after lowering. Errors: kUnsupported for an attribute that the operator's function has not read,
// because its meaning would be ignored.
Status CheckAllRead(const Op& op, const Operator& row);

}  // namespace rewire::compiler
