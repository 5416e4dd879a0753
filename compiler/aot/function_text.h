// SPDX-License-Identifier: Apache-2.0
//
// How entry points look in C: their declarations, and their functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/compiler/aot/entry_point.h"
#include "rewire/compiler/aot/kernel_calls.h"

namespace rewire::aot {

// The form of a source as its options say it.
struct SourceForm {
  std::string prefix;
  std::string upper;  // the prefix in capitals
  bool is_packed = false;
  bool is_behind_pointer = false;  // the caller passes a pointer to the weights
  std::uint64_t executable = 0;    // its content hash
};

std::string Joined(const std::vector<std::string>& parts, const char* between);

std::string DeclarationText(const SourceForm& form, const EntryPoint& entry);
// The functions of an entry point, `NAME_run` for the table among them.
std::string FunctionText(const SourceForm& form, const EntryPoint& entry, const KernelCalls& calls);

}  // namespace rewire::aot
