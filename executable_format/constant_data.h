// SPDX-License-Identifier: Apache-2.0
// From a constant's stored bytes to its tensor's bytes and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "base/export.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/module.h"

namespace rewire {

// Decoders that the host adds to the built-in ones, by codec id from kFirstHostCodec. Such a function fills
// all of `raw` from `stored`, which may be damaged or hostile, or returns an error. It is called from the
// thread that decodes.
struct ConstantCodecs {
  using Decode = std::function<Status(Span<const std::byte> stored, Span<std::byte> raw)>;
  std::map<std::uint32_t, Decode> decoders;
};

// Checks a data constant's checksum and decodes it into `raw`, which has constant.raw_bytes bytes. Nothing is
// written past them, whatever the stored bytes say. kInvalidFile: damaged. kUnsupported: a codec that is not
// known, or that this library was built without.
REWIRE_API Status DecodeConstant(const Constant& constant, const ConstantCodecs& codecs, Span<std::byte> raw);

// The checksum alone, for constants that are used where they lie.
REWIRE_API Status CheckConstantData(const Constant& constant);

// Replaces an uncompressed constant's bytes by a zstd frame, where that is smaller; `level` as zstd has them.
// kUnsupported in a build without zstd.
REWIRE_API Status CompressConstant(Constant* constant, int level = 3);

}  // namespace rewire
