// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/constant_data.h>.
//
// Decoding: from a constant's stored bytes to its tensor's bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// A decoder that the host adds to the built-in ones. Plain C, so that the C API can pass it on unchanged.
struct ConstantCodec {
  std::uint32_t id = 0;  // at least kFirstHostCodec; one id means one codec in a process
  void* context = nullptr;
  // Fills all of `raw` from `stored` and returns 0. The stored bytes may be damaged or hostile; any other
  // return value means that they are damaged. Several threads may call it at once.
  int (*decode)(void* context, const void* stored, std::size_t stored_bytes, void* raw,
                std::size_t raw_bytes) = nullptr;
};
using ConstantCodecs = Array<ConstantCodec>;

// Checks a data constant's checksum and decodes it into `raw`, which has constant.raw_bytes bytes. Never
// writes past `raw`, whatever the stored bytes say.
//
// Errors: kInvalidFile for damaged bytes. kUnsupported for a codec that is unknown or that this library was
// built without.
REWIRE_API Status DecodeConstant(const Constant& constant, const ConstantCodecs& codecs, Span<std::byte> raw);

// Checks whether the stored bytes can decode to constant.raw_bytes bytes, as far as this can be told without
// decoding. Call it before allocating memory for the result. Errors: kInvalidFile if they cannot.
REWIRE_API Status CheckDecodedSize(const Constant& constant);

// Checks only the checksum. For constants that are used in place, without a copy.
REWIRE_API Status CheckConstantData(const Constant& constant);

}  // namespace rewire
