// SPDX-License-Identifier: Apache-2.0
// Calibration: runs the float program on samples, quantises it by the ranges seen, and tells how far the
// outputs of the quantised one moved.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/vm.h"

namespace rewire::compiler {

class Calibrator {
 public:
  // Checks the samples and quantises the graph. Errors: kInvalidArgument for samples that do not fit the
  // inputs; those of running the float program.
  static Result<Calibrator> Quantize(Graph* graph, const Calibration& calibration, const KernelSet& kernels);

  // Runs both programs on the samples. An entry for each output of float elements.
  Result<std::vector<OutputMovement>> Movement(const Module& quantized) const;
  // Nodes that were quantised.
  std::size_t quantized() const { return quantized_; }

 private:
  Calibrator(Program program, KernelSet kernels) : float_(std::move(program)), kernels_(std::move(kernels)) {}

  Program float_;  // its results are the model's, and behind them what convolutions and products read
  KernelSet kernels_;
  std::vector<std::vector<rewire::Value>> calls_;  // inputs of each call
  std::vector<std::string> outputs_;
  std::size_t results_ = 0;
  std::size_t quantized_ = 0;
};

}  // namespace rewire::compiler
