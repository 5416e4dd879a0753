// SPDX-License-Identifier: Apache-2.0
// Runs small programs with and without bound outputs and compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vm/vm.h"

namespace rewire::test {

// In-process kernels that outputs' programs use, all on contiguous f32, any shape:
//   fill_<n>(out)      every element n
//   inc(x, out)        x + 1            (declared in_place where a program says so)
//   add(x, y, out)     x + y
//   copy(x, out)       x
//   two(out0, out1)    1 in the first, 2 in the second
//   bump(step, out)    out[step] = step
// Each notes the addresses that it writes in `written`.
inline constexpr char kTestKernels[] = R"(
.kernel fill_1 = "fill_1"
.kernel fill_2 = "fill_2"
.kernel inc = "inc"
.kernel add = "add"
)";

struct KernelLog {
  std::vector<const void*> written;
};
void AddTestKernels(KernelSet* kernels, KernelLog* log);

// Assembles, verifies and links; fails the test with the message otherwise.
Program LinkText(const std::string& text, KernelLog* log, LinkOptions options = {});

}  // namespace rewire::test
