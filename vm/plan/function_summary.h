// SPDX-License-Identifier: Apache-2.0
//
// A function's summary is all that its callers need to know about it and the structure of its result.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// A LeafSummary is all that a caller needs to know of one leaf of a function's result.
struct LeafSummary {
  bool allocates = false;  // may be a tensor that is made in the function or its callees
  bool constant = false;
  bool scalar = false;
  bool unknown = false;
  bool all_inputs = false;        // may be any part of any input
  Array<std::uint32_t> inputs{};  // sorted; may be any part of these inputs

  bool operator==(const LeafSummary& other) const {
    return allocates == other.allocates && constant == other.constant && scalar == other.scalar &&
           unknown == other.unknown && all_inputs == other.all_inputs && inputs == other.inputs;
  }
};
using FunctionSummary = Array<LeafSummary>;  // by leaf

// The tree of a function's result, prepared once, because callers need it at every call.
struct ResultShape {
  explicit ResultShape(const Type& type);

  Array<std::uint32_t> leaves;  // the nodes that are no ADTs, in pre-order
  Array<std::uint32_t> ends;    // by node: one past its subtree
};

// The summary that callers must assume for a function that was not analyzed.
FunctionSummary UnknownSummary(const ResultShape& result);

}  // namespace rewire
