// SPDX-License-Identifier: Apache-2.0
// A value as plain data: what a run gave, kept while memory changes, to be compared with another run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/vm/value.h"

namespace rewire::hostile {

struct Part {
  ValueKind kind = ValueKind::kNone;
  DLDataType dtype{};
  std::vector<std::int64_t> shape;
  std::string bytes;         // of a tensor's elements, contiguous
  std::int64_t integer = 0;  // an integer; an ADT's tag
  std::uint32_t fields = 0;  // of an ADT, which follow
};
using Snapshot = std::vector<Part>;  // in pre-order

// Follows strides. Of a large tree its first parts.
Snapshot Take(const Value& value);
Part Take(const TensorView& tensor);

// The place where they differ, or nothing. A NaN is every NaN of its type; an integer is the tensor that it
// would be boxed to.
std::string Difference(const Part& one, const Part& other);
std::string Difference(const Snapshot& one, const Snapshot& other);

}  // namespace rewire::hostile
