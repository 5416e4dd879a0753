// SPDX-License-Identifier: Apache-2.0
// What the verifier's parts share. Each part checks what the parts before it have left, in the order of this
// file, so that a later one may index by what an earlier one has checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/array.h"
#include "base/status.h"
#include "executable_format/limits.h"
#include "executable_format/module.h"

namespace rewire::verify {

// What breaks a rule: Fail with kVerificationFailed.
inline Status Violation(const char* message) { return Fail(StatusCode::kVerificationFailed, message); }
template <typename First, typename... Rest>
Status Violation(MessageFormat<1 + sizeof...(Rest)> message, const First& first, const Rest&... rest) {
  return Fail(StatusCode::kVerificationFailed, message, first, rest...);
}

// "main@12 (%3 = move %2): message".
Status ViolationAt(const Module& module, const Function& function, std::size_t pc, const Message& message);

// "limits": the module has `count` of something of which FormatLimits allow `limit`.
Status CheckLimit(const Message& what, std::uint64_t count, std::uint64_t limit);

// Names: not empty, at most limits.name_bytes, UTF-8 without control characters. `what` says whose name it
// is.
Status CheckName(const Message& what, std::string_view name, const FormatLimits& limits);
// A name that is there more than once, empty ones apart; empty when there is none. Sorts the names.
std::string_view FindTwice(Array<std::string_view>* names);
// Texts: at most limits.text_bytes, UTF-8.
Status CheckText(const Message& what, std::string_view text, const FormatLimits& limits);

// Devices, symbols, strings, metadata, constants, kernels.
Status CheckTables(const Module& module, const FormatLimits& limits);

// A type's tree and its tensors. `what` is "the result of 'main'".
Status CheckType(const Message& what, const Module& module, const Type& type, const FormatLimits& limits);
Status CheckTensorType(const Message& what, const Module& module, const TypeNode& node,
                       const FormatLimits& limits);

// Names, types and register counts of all functions, and `__init`'s signature.
Status CheckSignatures(const Module& module, const FormatLimits& limits);

// Where jumps go to: word 0 and every target, ascending, each once.
using Leaders = Array<std::uint32_t>;

// Lengths, operands against tables, targets, the last instruction, notes: what holds for code that is never
// reached too.
Result<Leaders> CheckStructure(const Module& module, const Function& function, const FormatLimits& limits);

// Registers: defined when read, of a kind that the instruction takes, not written when read-only. `steps`
// counts down over all functions.
Status CheckFlow(const Module& module, const Function& function, const Leaders& leaders,
                 const FormatLimits& limits, std::uint64_t* steps);

// Nothing that `__init` runs reads what it is to compute.
Status CheckInit(const Module& module);

}  // namespace rewire::verify
