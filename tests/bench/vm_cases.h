// SPDX-License-Identifier: Apache-2.0
// What is measured of the VM: cases, each a piece of work that can be run again and again, timed or counted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/vm/kernel/ffi_abi.h"

namespace rewire::bench {

// What a figure should not pass: so many times the direct call of an empty kernel, or so many nanoseconds.
struct Target {
  enum Unit : std::uint8_t { kDirectCalls, kNanoseconds } unit = kDirectCalls;
  double most = 0;
};

struct Case {
  std::string name;
  double operations = 1;      // in one call of run; figures are for one operation
  std::function<void()> run;  // long enough (microseconds) that its own call does not count
  std::optional<Target> target = std::nullopt;
};

// Cases of this beginning call the empty kernel without a VM. The kernel reads no argument, so they differ by
// where the compiler put their loops alone, which is worth some 20 %; the others are divided by the fastest,
// which flatters none.
inline constexpr const char kDirectCall[] = "direct call, ";

// A benchmark of something that fails would measure nothing: these end the process with the message. What
// holds costs a branch and builds no string, since the checks stand inside what is timed.
[[noreturn, gnu::cold]] void Die(const std::string& message);
inline void Require(bool holds, const char* message) {
  if (!holds) Die(message);
}
inline void Require(const Status& status) {
  if (!status) Die(status.error().message());
}
template <typename T>
T Take(Result<T> result) {
  if (!result) Die(result.error().message());
  return *std::move(result);
}

// A packed function that does nothing.
int EmptyKernel(void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*);

void AddOpcodeCases(std::vector<Case>& cases);     // vm_opcodes.cc
void AddCallCases(std::vector<Case>& cases);       // vm_calls.cc
void AddHostCases(std::vector<Case>& cases);       // vm_host.cc
void AddLoadCases(std::vector<Case>& cases);       // vm_load.cc
void AddParameterCases(std::vector<Case>& cases);  // vm_parameters.cc

}  // namespace rewire::bench
