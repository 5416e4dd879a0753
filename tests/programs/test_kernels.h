// SPDX-License-Identifier: Apache-2.0
// The kernels that the text programs of tests/programs call, as functions of this process:
//
//   test.expect_equal(a, b)  fails unless dtype, shape and every byte agree
//   test.add_one(x, out)     f32, of one shape
//   test.count(...) -> int   the number of tensors it was given
//   test.size(x) -> int      the number of elements of a tensor
//   test.seven() -> int      7
//   test.echo(x)             its argument, as a value
//   test.fail()              fails with "ValueError: told to fail"
#pragma once

#include "rewire/vm/kernel_set.h"

namespace rewire::test {

KernelSet TestKernels();

}  // namespace rewire::test
