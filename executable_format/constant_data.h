// SPDX-License-Identifier: Apache-2.0
// From a constant's stored bytes to its tensor's bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/array.h"
#include "base/export.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/module.h"

namespace rewire {

// A decoder of the host's beside the built-in ones. Plain C, so that it crosses the C API unchanged.
struct ConstantCodec {
  std::uint32_t id = 0;  // from kFirstHostCodec; one id means one codec in a process
  void* context = nullptr;
  // Fills all of `raw` from `stored`, which may be damaged or hostile, and returns 0; anything else: damaged.
  // Called from the thread that decodes, on several at once.
  int (*decode)(void* context, const void* stored, std::size_t stored_bytes, void* raw,
                std::size_t raw_bytes) = nullptr;
};
using ConstantCodecs = Array<ConstantCodec>;

// Checks a data constant's checksum and decodes it into `raw`, which has constant.raw_bytes bytes. Nothing is
// written past them, whatever the stored bytes say. kInvalidFile: damaged. kUnsupported: a codec that is not
// known, or that this library was built without.
REWIRE_API Status DecodeConstant(const Constant& constant, const ConstantCodecs& codecs, Span<std::byte> raw);

// The checksum alone, for constants that are used where they lie.
REWIRE_API Status CheckConstantData(const Constant& constant);

}  // namespace rewire
