// SPDX-License-Identifier: Apache-2.0
// The functions of a model as graphs: what people draw when they explain a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/executable_format/module.h"

namespace rewire::tools {

struct GraphNode {
  enum class Kind { kInput, kParameter, kConstant, kKernel, kInstruction };
  Kind kind = Kind::kInstruction;
  std::uint32_t pc = 0;                   // of the instruction; 0 for an input
  std::string title;                      // "image", "rewire.add", "if"
  std::vector<std::string> lines;         // type, instruction
  std::string source;                     // the model's node, "Conv 'conv_1'"; empty if it is not known
  std::optional<std::uint32_t> callee{};  // the function that an `invoke` calls
};

// The value of `from` may arrive at `to`.
struct GraphEdge {
  enum class Kind {
    kValue,
    kSize,     // it is the size or shape of memory that `to` writes
    kControl,  // `from` decides whether `to` comes next
  };
  std::size_t from = 0, to = 0;  // nodes by index
  Kind kind = Kind::kValue;
  std::string label;  // register and type; empty for kControl
};

struct FunctionGraph {
  std::uint32_t function = 0;
  std::string name;
  std::vector<GraphNode> nodes;  // inputs, then instructions in the order of the code
  std::vector<GraphEdge> edges;
};

// The graph of a function. What only takes memory, frees it, copies a register or jumps is no node: a kernel
// stands beside the kernels that read its outputs. `module` passed the verifier.
FunctionGraph GraphOf(const Module& module, std::uint32_t function);

}  // namespace rewire::tools
