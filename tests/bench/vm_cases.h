// SPDX-License-Identifier: Apache-2.0
// The cases that the VM's benchmark measures. A case is a piece of work that can be run again and again, to
// be timed or counted.
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

// The most that a figure should be: a multiple of the direct call of an empty kernel, or nanoseconds.
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

// Cases whose names begin with this call the empty kernel directly, without a VM. The kernel reads no
// argument, so these cases differ only by where the compiler put their loops. That is worth some 20 %. Other
// cases are given as multiples of the fastest of these, since a slower one would flatter them.
inline constexpr const char kDirectCall[] = "direct call, ";

// Each of these ends the process with the message if something failed, since a benchmark of a failure would
// measure nothing. A check that holds costs a branch and builds no string, because checks are inside what is
// timed.
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
