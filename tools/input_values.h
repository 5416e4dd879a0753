// SPDX-License-Identifier: Apache-2.0
// From --input, --random and --dim to the values that a function is called with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/span.h"
#include "base/status.h"
#include "executable_format/module.h"
#include "tools/random_tensor.h"
#include "tools/value_spec.h"
#include "vm/value.h"

namespace rewire::tools {

struct InputOptions {
  std::vector<std::string> inputs;         // --input
  std::vector<std::string> dims;           // --dim N=4
  bool random = false;                     // --random: fills in the inputs that are not given
  std::uint64_t seed = 0;                  // --seed
  std::vector<std::string> random_ranges;  // --range
};

// One value per input of the function, in order. Loads files. Symbolic dimensions of random inputs come from
// --dim, otherwise from the inputs that are given. Dtypes and shapes are not judged here: the VM does.
// kInvalidArgument, kNotFound with near names, and what reading a file reports, each with the input's name.
Result<std::vector<Value>> MakeInputs(const Module& module, const Function& function,
                                      const InputOptions& options);

}  // namespace rewire::tools
