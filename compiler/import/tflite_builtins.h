// SPDX-License-Identifier: Apache-2.0
//
// The builtin operators of .tflite files: their names by their codes, and the options of those that are read.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rewire::compiler::tflite {

// A field of an operator's options, which becomes an attribute of the node under its name.
struct OptionField {
  enum Kind : std::uint8_t { kByte, kInt, kFloat, kInts, kText };
  const char* name;
  int field;
  Kind kind;
  float fallback = 0;
};

struct Options {
  std::int32_t code;  // of the operator
  std::uint8_t type;  // of its options, in the union of all options
  // The axis along which input 1 may have a scale for each position; -1: none.
  int channel_axis;
  std::span<const OptionField> fields;
};

inline constexpr std::int32_t kCustom = 32;
inline constexpr std::int32_t kCallOnce = 129;
inline constexpr std::int32_t kVarHandle = 142;
inline constexpr std::int32_t kReadVariable = 143;
inline constexpr std::int32_t kAssignVariable = 144;

// The field of CALL_ONCE, and those of VAR_HANDLE.
inline constexpr int kInitSubgraph = 0, kContainer = 0, kSharedName = 1;

// "CONV_2D"; "builtin operator 999" for one that is not known.
std::string NameOfBuiltin(std::int32_t code);

// The options of an operator; null for one without any, and for operators that are not read.
const Options* OptionsOf(std::int32_t code);

}  // namespace rewire::compiler::tflite
