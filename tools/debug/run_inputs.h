// SPDX-License-Identifier: Apache-2.0
//
// The inputs of the next run, which the debugger's commands change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/run/input_values.h"

namespace rewire::tools {

class RunInputs {
 public:
  // The bindings of `options` are set by Set, which Start calls.
  RunInputs(const Module& module, InputOptions options);

  // Chooses the function, forgets what was set, and applies the options' bindings if `with_options`.
  Status Start(std::uint32_t function, bool with_options);
  // "x=VALUE", "x=fill:3", "x=random" or "@all.npz".
  Status Set(const std::string& binding);
  // "N=4".
  Status SetDim(const std::string& dim);
  // Errors: kInvalidArgument that names the inputs that are not set, and those of reading files.
  Result<std::vector<Value>> Make() const;
  // A line for each input: name, type and what it is set to.
  std::string Text() const;

 private:
  Status SetOne(std::uint32_t input, const std::string& value);
  // "2x3xf32=0.5". Errors: kInvalidArgument if the shape is not known.
  Result<std::string> Filled(std::uint32_t input, const std::string& number) const;

  const Module& module_;
  const InputOptions options_;
  std::uint32_t function_ = 0;
  std::map<std::uint32_t, std::string> values_;  // by input, as vm-run takes them; "random"
  std::map<std::string, std::string> dims_;      // sizes by symbol
};

}  // namespace rewire::tools
