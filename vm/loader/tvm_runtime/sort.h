// SPDX-License-Identifier: Apache-2.0
//
// Sorting along an axis, as TVM's runtime has it for compiled code. Elements are integers or floats of 8 to
// 64 bits, indices are integers, f32 or f64. Equal elements keep their order. NaN is above all numbers, and
// the two zeros are equal.
#pragma once

#include "rewire/vm/loader/tvm_runtime/classic_abi.h"

namespace rewire::tvm_runtime {

// (x, indices, axis, ascending)
int ArgSort(ClassicValue* values, int* codes, int count, ClassicValue* result, int* code, void* resource);
// (x, sorted, axis, ascending)
int Sort(ClassicValue* values, int* codes, int count, ClassicValue* result, int* code, void* resource);
// (x, [values,] [indices,] k, axis, "both" | "values" | "indices", ascending); k below 1 means all.
int TopK(ClassicValue* values, int* codes, int count, ClassicValue* result, int* code, void* resource);
// (x, counts, indices, axis, ascending): argsort of the first elements of each row along the axis. `counts`
// has how many, an i32 for each row. The elements behind them keep their places.
int ArgSortNms(ClassicValue* values, int* codes, int count, ClassicValue* result, int* code, void* resource);

}  // namespace rewire::tvm_runtime
