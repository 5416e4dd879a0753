// SPDX-License-Identifier: Apache-2.0
//
// A node of an operator that the host brings, as a call of its kernel.
#pragma once

#include "rewire/base/status.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/compiler/operator_schema.h"

namespace rewire::compiler {

// Errors: kInvalidFile and kUnsupported for a node that does not fit the schema.
Status LowerOwnNode(Op* op, const OperatorSchema& schema);

}  // namespace rewire::compiler
