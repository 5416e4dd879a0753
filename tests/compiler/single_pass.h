// SPDX-License-Identifier: Apache-2.0
// Runs one pass alone over a model.
#pragma once

#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {

using Lines = std::vector<std::string>;

// A model with an input "x" and an output "y".
onnx::ModelProto ModelOf(const std::vector<Dim>& x, std::int64_t opset = 13);
void AddFloat(onnx::NodeProto* node, const std::string& name, float value);
// So many weights: -3, -2, ... 3, -3, ...
std::vector<float> Numbers(std::int64_t count);

struct PassRun {
  Lines before, after;
  bool changes() const { return before != after; }
};

// Compiles the model without any pass and with this one alone, and checks that both programs give the same
// for x = 0, 1, 2, ... of this shape. The lines are those of the graph, without types and sources of nodes:
// "%2 = rewire.add(%0, @1)", with "once:" before those that run when a program is linked.
PassRun RunPass(const std::string& pass, const onnx::ModelProto& model, const Shape& shape);
// The same with several passes, named in the order in which they run. There is at least one.
PassRun RunPasses(const std::vector<std::string>& passes, const onnx::ModelProto& model, const Shape& shape);

// The kernels' names of such lines, without those that pack.
Lines KernelsOf(const Lines& lines);

}  // namespace rewire::test
