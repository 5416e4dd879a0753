// SPDX-License-Identifier: Apache-2.0
//
// Answers the questions of passes about a kernel. The answers come from the rows of the kernels
// (vm/kernel/row.h), which the kernel libraries export. Nothing here lists kernel names.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::compiler {

// The rows of the kernels of a set, which is asked once for each name. Thread-safe. Keeps the libraries
// loaded.
class KernelTraits {
 public:
  explicit KernelTraits(KernelSet kernels);

  // Null if there is no kernel of that name, or one without a row.
  const RewireKernelRow* Row(const std::string& name) const;
  // The work that the kernel's library declares, in the names of its row. Null: none.
  const RewireKernelWork* Work(const std::string& name) const;
  // kUnsupported when the kernel would refuse the node's attributes, dtypes or number of arguments. A kernel
  // that is not there refuses nothing. `one_dtype`: as CheckCall takes it.
  Status Check(const Node& node, bool one_dtype = true) const;

 private:
  // A function without `call` if no source has the name.
  const PackedFunction& Function(const std::string& name) const;

  KernelSet kernels_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, PackedFunction> functions_;  // those that were asked for
};

// The functions below take nodes that call kernels. They return false for other nodes and for kernels without
// a row. IsPure is an exception: only calls can be impure, and unknown kernels count as impure.
//
// IsPure: the node's results depend only on its inputs. So it may be computed once, or when compiling.
bool IsPure(const Graph& graph, const Node& node);
// True if each element of the single output depends only on the elements at the same position of its `inputs`
// inputs.
bool IsElementwise(const Graph& graph, const Node& node, std::size_t inputs);
// True if the elements of the single output are elements of the single input, selected by position and order.
bool Selects(const Graph& graph, const Node& node);
// True if the kernel has the attribute `layout`.
bool HasLayout(const Graph& graph, const Node& node);
// The inputs (bit i for input i) in whose memory the kernel may write its single output.
std::uint32_t InputsToWriteOver(const Graph& graph, const Node& node);

}  // namespace rewire::compiler
