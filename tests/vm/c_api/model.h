// SPDX-License-Identifier: Apache-2.0
// The executable that the tests of the C API open.
#pragma once

#include <cstddef>
#include <vector>

namespace rewire::test {

// The bytes of a file with
//   main(x: f32[2]) -> y: f32[2]              y = x + w by the kernel host.add; w is a parameter
//   swap((f32[2], integer)) -> (number: integer, vector: f32[2])
//   forever() -> value                        never returns
//   fail() -> value                           calls the kernel host.fail
//   batch(b: f32[N, ?]) -> b: f32[N, ?]       returns its input
const std::vector<std::byte>& ModelBytes();

}  // namespace rewire::test
