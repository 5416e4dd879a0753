// SPDX-License-Identifier: Apache-2.0
//
// Element types as the buffer protocol spells them.
#pragma once

#include <optional>
#include <string_view>

#include "rewire/base/dtype.h"

namespace rewire::python {

// nullopt for a format that is no single number in the machine's byte order. `bytes` is the item's size.
std::optional<DLDataType> DTypeOfFormat(std::string_view format, std::int64_t bytes);

// Static storage; null for an element type that has no format, such as bf16.
const char* FormatOfDType(DLDataType dtype);

}  // namespace rewire::python
