// SPDX-License-Identifier: Apache-2.0
//
// Makes the values that a function is called with from --input, --random and --dim.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/tools/run/random_tensor.h"
#include "rewire/tools/run/value_spec.h"
#include "rewire/vm/value.h"

namespace rewire::tools {

struct InputOptions {
  std::vector<std::string> inputs;         // --input
  std::vector<std::string> dims;           // --dim N=4
  bool random = false;                     // --random: fills the inputs that are not given
  std::uint64_t seed = 0;                  // --seed
  std::vector<std::string> random_ranges;  // --range
  std::string folder;  // where relative paths of files begin; empty: the working directory
};

// Returns one value per input of the function, in order. Loads files. Symbolic dimensions of random inputs
// come from --dim, or else from the given inputs. The VM checks dtypes and shapes, not this function. Errors
// name the input: kInvalidArgument, kNotFound with similar names, and errors of reading a file.
//
// `known` has values for inputs that the options do not give, in order: those of a state. Empty values, and
// those behind the last one, are not known.
Result<std::vector<Value>> MakeInputs(const Module& module, const Function& function,
                                      const InputOptions& options, Span<const Value> known = {});

}  // namespace rewire::tools
