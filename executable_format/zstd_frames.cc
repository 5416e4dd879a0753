// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/zstd_frames.h"

#ifndef REWIRE_NO_ZSTD
#include <zstd.h>
#endif

namespace rewire {

Status DecodeZstd(Span<const std::byte> frames, const Message& what, Span<std::byte> raw) {
#ifdef REWIRE_NO_ZSTD
  (void)frames;
  (void)raw;
  return Fail(StatusCode::kUnsupported,
              "{} needs zstd, which this library was built without (REWIRE_WITH_ZSTD)", what);
#else
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), frames.data(), frames.size());
  if (ZSTD_isError(size) != 0)
    return Fail(StatusCode::kInvalidFile, "{} is damaged: {}", what, ZSTD_getErrorName(size));
  if (size == raw.size()) return {};
  return Fail(StatusCode::kInvalidFile, "{} is damaged: it decompresses to {} bytes, expected {}", what, size,
              raw.size());
#endif
}

}  // namespace rewire
