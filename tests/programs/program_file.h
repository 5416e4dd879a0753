// SPDX-License-Identifier: Apache-2.0
// A text program of tests/programs: functions test_*, which must succeed, and fail_*, which must fail with
// the message that a comment in front of them states.
//
//   ; limits: steps=2 depth=10 bytes=4096
//   ; fails: run-time error: fail_past_the_end@6 (%2 = get_field %1, index=3): field 3 asked for, ...
//   .func fail_past_the_end() -> value
//
// "<n>" in a message stands for a number that is the VM's own affair, such as the bytes that it keeps for
// itself. They take no inputs. What they expect of values they check with the kernels of test_kernels.h.
// Every other function is a helper of theirs.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/limits.h"

namespace rewire::test {

struct ProgramCase {
  std::string function;
  Limits limits;
  bool fails = false;
  std::string message;  // "run-time error: ...": the name of the code, then the whole message
};

struct ProgramFile {
  std::string name;  // path below tests/programs, without .asm
  Module module;
  std::vector<ProgramCase> cases;
};

// Also an error: a directive that is not understood, a fail_ function without a message, a file without
// cases.
Result<ProgramFile> ReadProgramFile(const std::string& path, const std::string& name);

// All of them, in the order of their names.
Result<std::vector<ProgramFile>> ReadProgramFiles();

}  // namespace rewire::test
