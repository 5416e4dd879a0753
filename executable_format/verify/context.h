// SPDX-License-Identifier: Apache-2.0
//
// The parts of the verifier share this. The parts run in the order of this file. So a later part may use
// indices that an earlier part has checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/limits.h"
#include "rewire/executable_format/module.h"

namespace rewire::verify {

// Makes the failure for a broken rule: kVerificationFailed.
inline Status Violation(const char* message) { return Fail(StatusCode::kVerificationFailed, message); }
template <typename First, typename... Rest>
Status Violation(MessageFormat<1 + sizeof...(Rest)> message, const First& first, const Rest&... rest) {
  return Fail(StatusCode::kVerificationFailed, message, first, rest...);
}

// "main@12 (%3 = move %2): message".
Status ViolationAt(const Module& module, const Function& function, std::size_t pc, const Message& message);

// Checks a limit: the module has `count` of something, and FormatLimits allow `limit`.
Status CheckLimit(const Message& what, std::uint64_t count, std::uint64_t limit);

// Names: not empty, at most limits.name_bytes, UTF-8 without control characters. `what` says whose name it
// is.
Status CheckName(const Message& what, std::string_view name, const FormatLimits& limits);
// Returns a name that occurs more than once; empty names do not count. Empty if there is none. Sorts the
// names.
std::string_view FindTwice(Array<std::string_view>* names);
// Texts: at most limits.text_bytes, UTF-8.
Status CheckText(const Message& what, std::string_view text, const FormatLimits& limits);

// Devices, symbols, strings, metadata, constants, kernels.
Status CheckTables(const Module& module, const FormatLimits& limits);

// Blobs of device code and device kernels.
Status CheckDeviceCode(const Module& module, const FormatLimits& limits);
// Checks that no instruction loads a blob. The code's structure has been checked.
Status CheckLoadsOfDeviceCode(const Module& module);

// A type's tree and its tensors. `what` is "the result of 'main'".
Status CheckType(const Message& what, const Module& module, const Type& type, const FormatLimits& limits);
Status CheckTensorType(const Message& what, const Module& module, const TypeNode& node,
                       const FormatLimits& limits);

// Names, types and register counts of all functions, and `__init`'s signature.
Status CheckSignatures(const Module& module, const FormatLimits& limits);

// Targets of jumps: word 0 and every target, ascending, each once.
using Leaders = Array<std::uint32_t>;

// Checks lengths, operands against tables, jump targets, the last instruction, and notes. These rules also
// hold for unreachable code.
Result<Leaders> CheckStructure(const Module& module, const Function& function, const FormatLimits& limits);

// Checks registers: they are defined when read, have a kind that the instruction takes, and are not written
// when read-only. The meter counts over all functions.
Status CheckFlow(const Module& module, const Function& function, const Leaders& leaders,
                 const FormatLimits& limits, WorkMeter* meter);

// Checks that nothing that `__init` runs reads a constant that `__init` is to compute.
Status CheckInit(const Module& module);

}  // namespace rewire::verify
