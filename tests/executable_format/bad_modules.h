// SPDX-License-Identifier: Apache-2.0
// One module for every rule of docs/verification.md, wrong in that one thing.
#pragma once

#include <string>
#include <vector>

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
std::vector<BadModule> BadSignatures();
std::vector<BadModule> BadCode();
std::vector<BadModule> BadFlow();

std::vector<BadModule> BadModules();  // all of them

// A good module to make bad: constant 0 "w" f32[4], kernel 0 "k", string 0, functions 0 "main"(x: f32[4])
// that returns its input and has 8 registers, 1 "helper"(a: f32[4], s: storage) that returns a.
Module GoodModule();

}  // namespace rewire::test
