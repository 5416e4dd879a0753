// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {

// Runs a kernel of integers inside a VM, `calls` times in one VM, and gives its last integer result.
Result<std::int64_t> RunKernel(const KernelSet& kernels, const std::string& name,
                               const std::vector<std::int64_t>& args,
                               std::shared_ptr<ThreadPool> threads = nullptr, const Limits& limits = {},
                               int calls = 1);

// The message of a failure; "no error" of a success.
template <typename Outcome>
std::string MessageOf(const Outcome& result) {
  return result ? "no error" : result.error().message();
}

// <build>/tests/libraries/<name>.so
std::string TestLibrary(const std::string& name);
// Its kernels; fails the test if it cannot be loaded.
KernelSet Load(const std::string& library);

}  // namespace rewire::test

namespace rewire {

// A success that gave this value.
inline bool operator==(const Result<std::int64_t>& result, std::int64_t expected) {
  return result && *result == expected;
}

}  // namespace rewire
