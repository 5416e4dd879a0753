// SPDX-License-Identifier: Apache-2.0
// Reads what the generators wrote (casefile.py) and makes programs of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value.h"

namespace rewire::test {

struct TvmCall {
  std::string function;
  std::vector<Value> inputs;
  Value expected;
};

struct TvmCase {
  std::string name;
  std::size_t alignment;  // of the memory that TVM gives its kernels, bytes
  double tolerance;       // how much a float may differ, relative to 1 or to the value if that is larger
  Program program;
  std::vector<TvmCall> calls;
};

// The wrapper that replaces a kernel when the case is linked.
using KernelWrapper = std::function<PackedFunction(const PackedFunction&)>;

// The case in `directory`, imported and linked with its library: an object of case.json that is no kernel
// library. With `wrap` each kernel is replaced by what that makes of it.
Result<TvmCase> ReadTvmCase(const std::string& directory, const KernelWrapper& wrap = nullptr);

// "" when both are the same tree with equal tensors; else where they differ. Tensors are equal bit by bit, or
// within the tolerance if that is above 0. What is on a device is copied first. An integer equals a tensor of
// that one value, as TVM has no other form of integers.
std::string Difference(const Value& given, const Value& expected, double tolerance);

// The tensors of a tree, from left to right.
std::vector<Tensor> LeavesOf(const Value& value);

}  // namespace rewire::test
