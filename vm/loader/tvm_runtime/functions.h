// SPDX-License-Identifier: Apache-2.0
//
// Functions of TVM's runtime that code compiled by TVM calls by name. TVM has them in its own libraries.
// Programs that run here have only these. docs/vm-convert.md lists them, and those that are not here.
#pragma once

#include <string_view>

#include "rewire/base/array.h"
#include "rewire/vm/loader/classic_abi.h"

namespace rewire::tvm_runtime {

struct Function {
  std::string_view name;
  ClassicFunction call;
};

// All of them. The functions take tensors of the host without gaps and fail, with a message, on any other
// argument. They may be called only inside a kernel that a VM runs: scratch memory is the VM's.
Array<Function> Functions();

}  // namespace rewire::tvm_runtime
