// SPDX-License-Identifier: Apache-2.0
// Tensor elements as text, without loss: every bit pattern that has a spelling reads back to the same bits.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace rewire::text {

// Integers and unsigned integers of 8 to 64 bits, f16, bf16, f32, f64 and bool, one lane.
bool HasElementText(DLDataType dtype);

// The element at `bytes`, ElementBytes(dtype) long: shortest decimal that reads back the same, "inf", "nan",
// or "nan:0x7fc00001" for a NaN other than the usual one. A bool byte other than 0 and 1 has no spelling: "".
std::string ElementText(DLDataType dtype, const std::byte* bytes);

// The reverse. Integers also in hexadecimal, bool as true, false, 1 or 0. kInvalidArgument says why a text is
// no such element: not a number, or out of range.
Status ParseElement(DLDataType dtype, std::string_view text, std::byte* bytes);

// The element of a floating-point dtype above as a number, which is exact; and a number as the nearest
// element.
double ElementValue(DLDataType dtype, const std::byte* bytes);
void StoreElementValue(DLDataType dtype, double value, std::byte* bytes);

// A double that ParseElement(kFloat64) reads back the same, and that never looks like an integer ("2.0").
std::string DoubleText(double value);

}  // namespace rewire::text
