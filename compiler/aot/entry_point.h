// SPDX-License-Identifier: Apache-2.0
//
// EntryPoint: a function that C calls. Where its inputs have symbolic dimensions, it has a version for each
// size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/aot/static_program.h"

namespace rewire::aot {

// A symbolic dimension of an entry point's inputs. It has the sizes 1 to `most`.
struct OpenSize {
  std::uint32_t symbol = 0;
  std::string name;
  std::string c_name;
  std::int64_t most = 0;
};

struct Version {
  std::vector<std::int64_t> sizes;
  std::unique_ptr<StaticProgram> program;
  std::string body;
};

struct EntryPoint {
  std::string name;  // of the function in the executable
  std::string c_name;
  std::vector<OpenSize> sizes;
  std::vector<Version> versions;  // the last size varies fastest; one if there are no sizes
  // The parameters in C, and what the largest version gives: dimensions that vary have their largest size.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<Leaf> input_leaves;
  std::vector<Leaf> output_leaves;
  std::uint64_t arena_bytes = 0;

  bool IsOpen() const { return !sizes.empty(); }
};

// Errors: kUnsupported if a version cannot be made static, if a symbol has no largest size, and if all
// versions together have more than EmitCOptions::max_instructions.
Result<EntryPoint> MakeEntryPoint(const SourceParts& parts, const std::string& name, std::uint32_t function,
                                  const std::string& c_name);

}  // namespace rewire::aot
