// SPDX-License-Identifier: Apache-2.0
// Tensor elements as text, without loss: every bit pattern that has a spelling reads back to the same bits.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "rewire/base/status.h"

namespace rewire::text {

// True for integers and unsigned integers of 8 to 64 bits, f16, bf16, f32, f64 and bool, with one lane.
bool HasElementText(DLDataType dtype);

// The element at `bytes`, ElementBytes(dtype) long: shortest decimal that reads back the same, "inf", "nan",
// or "nan:0x7fc00001" for a NaN other than the usual one. A bool byte other than 0 and 1 has no spelling: "".
std::string ElementText(DLDataType dtype, const std::byte* bytes);

// The inverse. Integers may be hexadecimal; a bool is true, false, 1 or 0. Errors: kInvalidArgument with the
// reason: no number, or out of range.
Status ParseElement(DLDataType dtype, std::string_view text, std::byte* bytes);

// The value of a floating-point element of these dtypes, which is exact; and the nearest element to a number.
double ElementValue(DLDataType dtype, const std::byte* bytes);
void StoreElementValue(DLDataType dtype, double value, std::byte* bytes);

// A double that ParseElement(kFloat64) reads back the same, and that never looks like an integer ("2.0").
std::string DoubleText(double value);

}  // namespace rewire::text
