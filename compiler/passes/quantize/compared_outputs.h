// SPDX-License-Identifier: Apache-2.0
// How far the outputs of a quantized program are from those of the float one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/passes/quantize/sample_runs.h"

namespace rewire::compiler {

class ComparedOutputs {
 public:
  // `calls` must stay.
  static Result<ComparedOutputs> Make(SampleProgram original, const Calls& calls,
                                      std::vector<std::string> names);

  // Runs a program on the samples. An entry for each output of float elements.
  Result<std::vector<OutputMovement>> Movement(const SampleProgram& quantized) const;

 private:
  ComparedOutputs(SampleProgram original, const Calls& calls, std::vector<std::string> names)
      : original_(std::move(original)), calls_(&calls), names_(std::move(names)) {}

  SampleProgram original_;
  const Calls* calls_;
  std::vector<std::string> names_;
  // The float outputs of the first calls; those of the others are computed again.
  std::vector<std::vector<rewire::Value>> kept_;
};

}  // namespace rewire::compiler
