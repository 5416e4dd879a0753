// SPDX-License-Identifier: Apache-2.0
//
// The operators that a host brings, under the schemas of CompileOptions::operators.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operator_schema.h"

namespace rewire::compiler {

struct OwnOperator {
  OperatorSchema schema;
  std::string attributes;  // the row's rules for them
  Operator row;
};

class OwnOperators {
 public:
  // Rows and names point into the operators, which stay where they are when the object moves.
  OwnOperators(OwnOperators&&) = default;
  OwnOperators& operator=(OwnOperators&&) = default;

  // Errors: kInvalidArgument for a schema that no node can fit, such as one with a dimension of unknown
  // names.
  static Result<OwnOperators> Make(const std::vector<OperatorSchema>& schemas);

  // Null if no schema has this name. The newest schema counts.
  const OwnOperator* Find(const std::string& domain, const std::string& name) const;

 private:
  OwnOperators() = default;

  std::deque<OwnOperator> operators_;  // rows point to their texts
  std::map<std::pair<std::string, std::string>, const OwnOperator*> by_name_;
};

// Errors about an operator that the compiler does not know end with this text.
inline constexpr const char kHowToOwn[] =
    "give its schema (vm-compile --operators FILE.json, or LIBRARY.json beside the LIBRARY.so of --kernels, "
    "CompileOptions::operators) and a kernel: docs/own-operators.md";

}  // namespace rewire::compiler
