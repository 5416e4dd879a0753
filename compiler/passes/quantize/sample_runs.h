// SPDX-License-Identifier: Apache-2.0
// Runs a graph on the samples of a calibration.
#pragma once

#include <functional>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/quantize/calibration_data.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/vm.h"

namespace rewire::compiler {

// How graphs become programs while calibrating.
struct Building {
  std::function<Status(Graph*)> optimize;  // runs the passes
  KernelSet kernels;
};

// A graph, consumed, as a program.
class SampleProgram {
 public:
  static Result<SampleProgram> Make(Graph graph, const Building& building);

  // The results of one call, in the graph's order.
  Result<std::vector<rewire::Value>> Run(const std::vector<rewire::Value>& inputs) const;

 private:
  SampleProgram(const Program& program, std::size_t results) : program_(program), results_(results) {}

  Program program_;
  std::size_t results_;
};

// The elements of a tensor of f32. Nothing for other values.
Span<const float> SampleElements(const rewire::Value& value);

}  // namespace rewire::compiler
