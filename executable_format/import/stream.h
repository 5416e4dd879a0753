// SPDX-License-Identifier: Apache-2.0
// What TVM's serialized streams are made of: strings and lists with 64-bit counts, tensors, parameter lists.
// Everything is little-endian. Nothing is copied but names, and no count is believed before the bytes that
// remain could hold it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/array.h"
#include "base/byte_reader.h"
#include "base/status.h"
#include "executable_format/import/tvm.h"
#include "executable_format/module.h"

namespace rewire::tvm {

Status Malformed(const std::string& message);
// What a read past the end of a stream gives: "the file ends inside `what`".
Status Truncated(const std::string& what);

// A string: its length, its bytes. As with ByteReader, failures show in reader.ok().
std::string ReadString(ByteReader& reader);
Array<std::string> ReadStrings(ByteReader& reader);
Array<std::int64_t> ReadInts(ByteReader& reader);

// TVM's names for dtypes as Rewire has them: the old boolean, one-bit unsigned in a byte, becomes bool.
DLDataType FromTvmDType(DLDataType type);

// Bytes of one tensor: its header, then its elements. `what` names it in errors.
Result<ForeignTensor> ReadTensor(ByteReader& reader, const std::string& what);

}  // namespace rewire::tvm
