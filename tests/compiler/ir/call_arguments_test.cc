// SPDX-License-Identifier: Apache-2.0
// Dtypes that an argument of a kernel takes (vm/kernel/row.h).
#include "rewire/compiler/ir/call_arguments.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewire/base/dtype.h"

namespace rewire::compiler {
namespace {

bool Takes(std::uint32_t dtypes, DLDataType dtype) {
  RewireKernelArgument argument{};
  argument.dtypes = dtypes;
  return Accepts(argument, dtype);
}

TEST_CASE("an argument takes the dtypes of its set, and others by their bytes") {
  const DLDataType complex64 = {kDLComplex, 64, 1}, complex128 = {kDLComplex, 128, 1},
                   wide = {kDLFloat, 32, 8};
  for (const DLDataType dtype : {kFloat32, kInt64, kInt8, complex64, complex128, wide}) {
    CHECK(Takes(0, dtype));  // no set: any
    // A dtype with a bit of its own is told by that alone.
    const bool known = dtype == kFloat32 || dtype == kInt64 || dtype == kInt8;
    const bool small = dtype == complex64, middle = dtype == complex128;
    CHECK(Takes(REWIRE_DTYPE_OTHER_8, dtype) == small);
    CHECK(Takes(REWIRE_DTYPE_OTHER_16, dtype) == (small || middle));
    CHECK(Takes(REWIRE_DTYPE_F32 | REWIRE_DTYPE_I64 | REWIRE_DTYPE_I8, dtype) == known);
  }
  for (const DLDataType narrow :
       {DLDataType{kDLInt, 4, 1}, DLDataType{kDLUInt, 2, 1}, DLDataType{10, 8, 1}}) {
    CHECK(IsNarrow(narrow));
    CHECK(Takes(REWIRE_DTYPE_NARROW, narrow));
    CHECK_FALSE(Takes(REWIRE_DTYPE_F32, narrow));
    CHECK(Takes(REWIRE_DTYPE_OTHER_8, narrow));
  }
}

}  // namespace
}  // namespace rewire::compiler
