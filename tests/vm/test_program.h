// SPDX-License-Identifier: Apache-2.0
// Programs out of text, host kernels and allocators for the tests of the VM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tests/support/test_allocator.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {

// Assembles, verifies and links; the test fails with the message when a step does.
Executable ExecutableOf(const std::string& text);
Program ProgramOf(const std::string& text, LinkOptions options = {});

// "runtime failed: main@3 (...): ..." as the test wants to see it: the message, or "" for success.
std::string MessageOf(const Status& status);
template <typename T>
std::string MessageOf(const Result<T>& result) {
  return result ? std::string() : result.error().message();
}

// A kernel out of a plain function.
PackedFunction Packed(RewirePackedFunction call, void* handle = nullptr);

// A float tensor on the host with these elements, one dimension.
Tensor Floats(const std::vector<float>& elements);
Tensor Ints(const std::vector<std::int64_t>& elements);
std::vector<float> FloatsOf(const Tensor& tensor);

// A list cell: tag 1, the value, the rest; the empty list is tag 0.
Value ListOf(const std::vector<std::int64_t>& elements);

}  // namespace rewire::test
