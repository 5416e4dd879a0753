// SPDX-License-Identifier: Apache-2.0
// The compiler's door: an ONNX model in, a module out.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "compiler/lower/lowering.h"
#include "executable_format/module.h"

namespace rewire::compiler {

struct CompileOptions {
  std::map<std::string, std::int64_t> dims;  // symbolic dimensions to fix: {"N", 4}
  // The largest size of dimensions that stay symbolic: {"N", 64}. The executable keeps it, refuses larger
  // inputs, and has a memory bound where nothing else is open.
  std::map<std::string, std::int64_t> max_dims;
  std::set<std::string> disabled_passes;  // names of PassNames()
  // Told of each stage with its name and the program after it, as text; empty: nobody.
  std::function<void(const std::string& stage, const std::string& text)> dump;
  // Told what begins: "reading", a pass by its name, "packing weights 3 of 20", ...; empty: nobody.
  std::function<void(const std::string& what)> progress;
};

struct Compiled {
  Module module;
  std::size_t model_nodes = 0;
  std::size_t nodes = 0;  // of the program, after all passes
  std::size_t kernel_calls = 0;
  std::uint64_t constant_bytes = 0;
  // What tensors inside `main` lie in whose size is known, or whose largest is, and what they would take of
  // the VM's pool without; 0 where they are allocated each by itself.
  std::uint64_t arena_bytes = 0;
  std::uint64_t separate_bytes = 0;
};

// The names that disabled_passes may hold, in the order in which passes run.
std::vector<std::string> PassNames();

// Not thread-safe against itself only in that protobuf's descriptors are built once; any number of models may
// be compiled at once. kUnsupported: `*unsupported` then lists every node that cannot be compiled, and why.
// Other errors are those of reading a model; a message names the model, and what to do.
Result<Compiled> CompileOnnx(const std::string& path, const CompileOptions& options,
                             std::vector<Unsupported>* unsupported);
// The same from memory: external data may lie in `folder` (empty: nowhere), `what` names the model.
Result<Compiled> CompileOnnx(const SharedBytes& bytes, const std::string& folder, const std::string& what,
                             const CompileOptions& options, std::vector<Unsupported>* unsupported);

}  // namespace rewire::compiler
