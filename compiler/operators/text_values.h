// SPDX-License-Identifier: Apache-2.0
//
// Tensors of strings whose lists only the run knows (lower/string_tables.h), for the operators that read or
// make them.
#pragma once

#include <string>
#include <vector>

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

// A tensor of strings as kernels take it.
struct TextTensor {
  Value* positions = nullptr;  // i64, of the tensor's shape
  Value* offsets = nullptr;    // i64[count + 1]
  Value* bytes = nullptr;      // u8[length]

  std::vector<Value*> arguments() const { return {positions, offsets, bytes}; }
};

// A value that is strings; a list that is known when compiling becomes two constants.
TextTensor TextTensorOf(Op& op, Value* x);
// A tensor of one axis with these strings.
TextTensor ConstantTexts(Op& op, const Strings& strings);
// Makes an output strings of a list.
void SetTexts(Op& op, int output, const TextTensor& texts);

// The strings, one for each element of a tensor of shape `dims`, that the kernel makes. A second kernel of
// the same arguments, with "_offsets" behind its name, says where they lie.
TextTensor NewTexts(Op& op, const std::string& kernel, const std::vector<Value*>& arguments,
                    const Attributes& attributes, const Shape& dims);
// The last of the offsets, i64[1].
Value* LengthOf(Op& op, Value* offsets);

TextTensor ExpandedTexts(Op& op, const TextTensor& texts, const Shape& dims);

// The place of each string in `keys`, the last of several; -1 if nowhere.
Value* PositionsInKeys(Op& op, const TextTensor& texts, const Strings& keys);

// The values as strings of one list, in the order of `values`. Sets the list of all of them with SetJoined.
struct JoinedTexts {
  std::vector<Value*> positions;
  std::optional<Strings> strings;  // if all lists are known when compiling
  Value* offsets = nullptr;
  Value* bytes = nullptr;
};
JoinedTexts JoinTexts(Op& op, const std::vector<Value*>& values);
// The output is `positions` of the list.
void SetJoined(Op& op, int output, Value* positions, const JoinedTexts& list);

}  // namespace rewire::compiler
