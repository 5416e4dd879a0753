// SPDX-License-Identifier: Apache-2.0
// One module for every rule of docs/verification.md. The module breaks that rule and no other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/limits.h"
#include "rewire/executable_format/module.h"

namespace rewire::test {

struct BadModule {
  std::string name;  // the rule's id, or "id/variant"
  Module module;
  std::string message;  // the verifier's, whole
  FormatLimits limits = {};
  bool in_memory_only = false;  // no file can say this
};

std::vector<BadModule> BadTables();
std::vector<BadModule> BadDeviceCode();
std::vector<BadModule> BadSignatures();
std::vector<BadModule> BadCode();
std::vector<BadModule> BadFlow();

std::vector<BadModule> BadModules();  // all of them

// A good module, which tests make bad. It has constant 0 "w" f32[4], kernel 0 "k", string 0, and two
// functions. Function 0 is "main"(x: f32[4]), which returns its input and has 8 registers. Function 1 is
// "helper"(a: f32[4], s: storage), which returns a.
Module GoodModule();

using ModuleChange = std::function<void(Module&)>;
using EmitCode = std::function<void(CodeWriter&)>;

// The good module after `change`.
BadModule Changed(std::string name, const ModuleChange& change, std::string message,
                  FormatLimits limits = {});
// The good module whose "main" has the code that `emit` writes and a return of its input, after `change`.
BadModule Emitted(std::string name, const EmitCode& emit, std::string message,
                  const ModuleChange& change = {});

// Limits of which one has another value.
FormatLimits Limit(std::uint32_t FormatLimits::*member, std::uint32_t value);

}  // namespace rewire::test
