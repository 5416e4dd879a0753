// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "rewire/base/dtype.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::triton {

// Element types by Triton's numbers; 0 is no type.
inline constexpr std::array kDataTypes = {
    DLDataType{},           kBool8,
    MakeDType(kUInt, 8),    MakeDType(kUInt, 16),
    MakeDType(kUInt, 32),   MakeDType(kUInt, 64),
    MakeDType(kInt, 8),     MakeDType(kInt, 16),
    MakeDType(kInt, 32),    MakeDType(kInt, 64),
    MakeDType(kFloat, 16),  MakeDType(kFloat, 32),
    MakeDType(kFloat, 64),  serve::kWireText,
    MakeDType(kBFloat, 16),
};

// {} for a number that is no type.
inline DLDataType DTypeOf(int number) {
  return number > 0 && static_cast<std::size_t>(number) < kDataTypes.size()
             ? kDataTypes[static_cast<std::size_t>(number)]
             : DLDataType{};
}

// 0 for a type that Triton does not have.
inline int NumberOf(DLDataType dtype) {
  for (std::size_t i = 1; i < kDataTypes.size(); ++i) {
    if (kDataTypes[i] == dtype) return static_cast<int>(i);
  }
  return 0;
}

}  // namespace rewire::triton
