// SPDX-License-Identifier: Apache-2.0
//
// Reads the elements of TVM's serialized streams: strings and lists with 64-bit counts, tensors, parameter
// lists. All numbers are little-endian. Only names are copied. A count is checked against the remaining bytes
// before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/byte_reader.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/executable_format/module.h"

namespace rewire::tvm {

Status Malformed(const std::string& message);
// The error for a read past the end of a stream: "the file ends inside `what`".
Status Truncated(const std::string& what);

// Reads a string: its length, then its bytes. As with ByteReader, failures show in reader.ok().
std::string ReadString(ByteReader& reader);
Array<std::string> ReadStrings(ByteReader& reader);
Array<std::int64_t> ReadInts(ByteReader& reader);

// Converts a dtype of TVM. The old boolean, a one-bit unsigned integer in a byte, becomes bool.
DLDataType FromTvmDType(DLDataType type);

// Reads one tensor: its header, then its elements. `what` names it in errors.
Result<ForeignTensor> ReadTensor(ByteReader& reader, const std::string& what);

}  // namespace rewire::tvm
