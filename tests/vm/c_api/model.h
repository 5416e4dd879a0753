// SPDX-License-Identifier: Apache-2.0
// The executable that the tests of the C API open.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rewire/vm/c_api/status.h"

namespace rewire::test {

// The bytes of a file with
//   main(x: f32[2]) -> y: f32[2]              y = x + w by the kernel host.add; w is a parameter
//   swap((f32[2], integer)) -> (number: integer, vector: f32[2])
//   forever() -> value                        never returns
//   fail() -> value                           calls the kernel host.fail
//   batch(b: f32[N, ?]) -> b: f32[N, ?]       returns its input
const std::vector<std::byte>& ModelBytes();

// The error message of this thread's last call that failed.
inline std::string LastError() { return rewire_last_error_message(); }

}  // namespace rewire::test
