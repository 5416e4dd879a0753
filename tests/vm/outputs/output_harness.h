// SPDX-License-Identifier: Apache-2.0
// Runs small programs with and without bound outputs and compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/vm/vm.h"

namespace rewire::test {

// In-process kernels that outputs' programs use, on contiguous tensors of any shape. Arguments with fewer
// elements than the output are read again from their start, so that no call is out of bounds:
//   fill_<n>(out)           every element n, a digit
//   inc(x, out)             x + 1
//   add(x, y, out)          x + y
//   mean(x, y, out)         (x + y) / 2
//   copy(x, out)            x
//   sum(x..., out)          all x added up
//   like(x, out)            x's element count in every element; does not read x
//   two(out0, out1)         1 in the first, 2 in the second
//   fill_all(out...)        3, 4, ... in one after the other
//   give(x)                 returns x
//   first(out), next(i, out), previous(i, out)      0, i + 1, i - 1 on i64[]
// Each notes the addresses that it writes, and whether it has read memory that nobody had written (linked
// with StorageFill::kPoison).
inline constexpr char kTestKernels[] = R"(
.kernel fill_1 = "fill_1"
.kernel fill_2 = "fill_2"
.kernel inc = "inc"
.kernel add = "add"
)";

struct KernelLog {
  std::vector<const void*> written;
  bool read_poison = false;
};
// `log` may be null; it outlives the kernels' last call.
void AddTestKernels(KernelSet* kernels, KernelLog* log);

// Assembles, verifies and links; fails the test with the message otherwise.
// `change`, if it is given, is applied to the assembled module.
Program LinkText(const std::string& text, KernelLog* log, LinkOptions options = {},
                 void (*change)(Module* module) = nullptr);

}  // namespace rewire::test
