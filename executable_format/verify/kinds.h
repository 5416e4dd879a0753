// SPDX-License-Identifier: Apache-2.0
//
// The flow analysis knows this of a register: one bit for each kind of value that it may hold. Joining two
// paths is a bitwise or. A check asks whether the needed kind is still possible; during the run, the
// register's tag decides.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/executable_format/types.h"

namespace rewire::verify {

using Kinds = std::uint8_t;

inline constexpr Kinds kMayInteger = 1;
inline constexpr Kinds kMayTensor = 2;
inline constexpr Kinds kMayAdt = 4;
inline constexpr Kinds kMayClosure = 8;
inline constexpr Kinds kMayStorage = 16;
inline constexpr Kinds kAnyKind = 31;
// A tensor in the register, or in its fields, may be writable. Without this bit, all of them are read-only on
// all paths.
inline constexpr Kinds kMayWrite = 32;
inline constexpr Kinds kMayUndefined = 64;

// The kinds that a register can hold after it was checked against `type`, without kMayWrite. An integer is
// allowed for a tensor type that a one-element integer tensor could have.
Kinds KindsOf(const Type& type);

// "a tensor", "an integer or an ADT".
std::string KindsText(Kinds kinds);

}  // namespace rewire::verify
