// SPDX-License-Identifier: Apache-2.0
//
// An ONNX model in, a module out, not yet verified. compiler.h is the interface for hosts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rewire/base/shared_bytes.h"
#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/driver/run_passes.h"
#include "rewire/compiler/lower/lowering.h"
#include "rewire/executable_format/module.h"

namespace rewire::compiler {

using rewire::CompileOptions;

struct Compiled {
  Module module;
  std::size_t model_nodes = 0;
  std::size_t nodes = 0;  // of the program, after all passes
  std::size_t kernel_calls = 0;
  std::uint64_t constant_bytes = 0;
  // Size of the arena, which holds tensors inside `main` of known or limited size, and what these tensors
  // would take from the VM's pool without it. 0 if each is allocated by itself.
  std::uint64_t arena_bytes = 0;
  std::uint64_t separate_bytes = 0;
  // The same for tensors on the device.
  std::uint64_t device_arena_bytes = 0;
  std::uint64_t device_separate_bytes = 0;
  ParameterSet parameters;                 // the model's own
  std::set<std::string> external_read;     // locations of the external data that was read
  std::vector<ProductPrecision> products;  // for Precision::kInt8 and kBf16
  std::vector<OutputMovement> movement;
  std::string unmeasured;
  std::size_t device_calls = 0;  // for a device
  std::vector<HostCalls> host_calls;
  std::vector<ZeroedConstant> zeroed_weights;
  ShardReport shards;
};

// The names that disabled_passes may contain, in the order of the passes.
std::vector<std::string> PassNames();

// The passes that CompileOptions::strict leaves out.
std::vector<std::string> StrictlySkippedPasses();

// Compiles a model. Any number of models may be compiled at once, after protobuf has built its descriptors
// once.
//
// Errors: kStepLimit if `limits.work` is used up. kUnsupported, and `*unsupported` then lists every node that
// cannot be compiled, with the reason. Other errors come from reading the model. A message names the model
// and what to do. `after` is for tests.
Result<Compiled> CompileOnnx(const std::string& path, const CompileOptions& options,
                             std::vector<Unsupported>* unsupported, const AfterPass& after = {});
// The same from memory. External data may lie in `folder`; an empty `folder` refuses external data. `what`
// names the model in messages.
Result<Compiled> CompileOnnx(const SharedBytes& bytes, const std::string& folder, const std::string& what,
                             const CompileOptions& options, std::vector<Unsupported>* unsupported,
                             const AfterPass& after = {});

}  // namespace rewire::compiler
