// SPDX-License-Identifier: Apache-2.0
//
// The contents of registers, as the debugger names and shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/vm/value.h"

namespace rewire::tools {

// A register, and the fields that lead from its value to a part: "%tree.1.0".
struct RegisterPath {
  std::uint32_t reg = 0;
  std::vector<std::uint32_t> fields;
  std::string text;  // as the debugger writes it
};

// "%image", "image", "%4" or "4", then fields. An input's name is preferred to a number. Errors:
// kNotFound, with similar names and the number of registers; kInvalidArgument for a wrong field.
Result<RegisterPath> ParseRegister(const Function& function, std::string_view text);

// The part of `value` that `path` names. Errors: kNotFound if an ADT on the way has fewer fields.
Result<Value> FollowPath(Value value, const RegisterPath& path);

// The elements, copied from another device if they lie there. An integer is a scalar of int64. Errors:
// kInvalidArgument for other values, and those of the device.
Result<HostTensor> ElementsOf(const Value& value);

// The content of a value in half a line: the numbers of a tensor or their picture, the fields of an ADT.
// Empty where the kind says everything.
std::string ContentText(const Value& value, bool unicode);

// A number that almost certainly differs if the value, its elements or the bytes of a storage differ. Takes
// time for every byte.
std::uint64_t Fingerprint(const Value& value);

}  // namespace rewire::tools
