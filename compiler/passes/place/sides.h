// SPDX-License-Identifier: Apache-2.0
//
// On which side values lie that enter and leave blocks: on the host, or on the device.
#pragma once

#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// A value that an If gives, or that a Loop carries. It lies on one side, on every path and in every
// iteration.
struct Slot {
  Value* output = nullptr;
  Value* parameter = nullptr;    // of a Loop's body; null for an If
  std::vector<Value**> sources;  // what becomes this value: results of blocks, and what a Loop begins with
};

// The slots of an If or a Loop, one for each output. Other nodes have none.
std::vector<Slot> SlotsOf(Node* node);

// The outputs of those slots that lie on the device. Copies between the sides are then fewest; those inside
// loops count more. `placed` are the nodes that run on the device. `on_host` are values that instructions
// read on the host, such as conditions: they stay there.
std::unordered_set<const Value*> SlotsOnDevice(const Graph& graph,
                                               const std::unordered_set<const Node*>& placed,
                                               const std::unordered_set<const Value*>& on_host);

}  // namespace rewire::compiler
