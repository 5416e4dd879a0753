// SPDX-License-Identifier: Apache-2.0
// The kernels of both libraries, and what each takes. Arguments come from the registry's rows; the attributes
// are asked of the kernels themselves, whose messages name them, their kinds, choices and ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/fuzz/kernels/host.h"

namespace rewire::test {

struct ParameterOf {
  std::string name;
  bool optional = false;
  bool list = false;
  bool one_element = false;
  std::uint32_t dtypes = 0;      // set of REWIRE_DTYPE_*; 0 when the row does not say
  std::uint8_t dtype_group = 0;  // those of one have the same
};

struct AttributeOf {
  enum Kind { kInt, kFloat, kString, kInts, kFloats };
  std::string name;
  Kind kind = kInt;
  bool required = false;
  std::vector<std::string> choices;
  std::int64_t least = 0, most = 0;  // of an int with a range; both 0 without
};

struct KernelOf {
  Entry entry;
  std::vector<ParameterOf> parameters;
  std::vector<AttributeOf> attributes;
};

// `libraries`: paths of kernel libraries besides kernels/cpu. Ends the process with a message when one does
// not load.
std::vector<KernelOf> AllKernels(const std::vector<std::string>& libraries);

}  // namespace rewire::test
