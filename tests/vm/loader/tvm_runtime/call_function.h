// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/vm/tensor.h"

namespace rewire::test {

// Calls a function of TVM's runtime (vm/loader/tvm_runtime) inside a kernel that a VM runs: with the tensors,
// which it may write, and then the rest. Returns the message of the failure, "no error" without one.
std::string CallTvmFunction(const std::string& name, const std::vector<TensorView>& tensors,
                            const std::vector<std::variant<std::int64_t, const char*>>& rest);

}  // namespace rewire::test
