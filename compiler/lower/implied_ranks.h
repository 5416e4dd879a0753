// SPDX-License-Identifier: Apache-2.0
//
// Ranks of inputs that declare no shape. A node that always runs and takes one rank alone says which: a
// convolution takes that of its weights, Gemm takes matrices. So models whose exporter left shapes out
// compile as if it had not.
#pragma once

#include <map>
#include <string>

#include "rewire/compiler/import/onnx_proto.h"

namespace rewire::compiler {

// The rank of each value of the graph that a node implies, also through nodes that keep the rank. Values for
// which nodes disagree are left out.
std::map<std::string, int> ImpliedRanks(const onnx::GraphProto& graph);

}  // namespace rewire::compiler
