// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/constant_data.h"

#ifndef REWIRE_NO_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "rewire/base/hash.h"
#include "rewire/executable_format/zstd_frames.h"

namespace rewire {
namespace {

Status Damaged(const Constant& constant, const Message& what) {
  return Fail(StatusCode::kInvalidFile, "constant '{}' is damaged: {}", constant.name, what.Text());
}

}  // namespace

Status CheckConstantData(const Constant& constant) {
  const std::uint64_t checksum = Hash64(constant.stored.view);
  if (checksum == constant.checksum) return {};
  return Damaged(constant, {"its bytes have checksum {}, its record says {}", HashText(checksum),
                            HashText(constant.checksum)});
}

Status CheckDecodedSize(const Constant& constant) {
#ifdef REWIRE_NO_ZSTD
  (void)constant;
#else
  if (constant.codec != kCodecZstd) return {};
  Span<const std::byte> rest = constant.stored.view;
  std::uint64_t bytes = 0;
  while (!rest.empty() && bytes < constant.raw_bytes) {
    const std::size_t frame = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
    if (ZSTD_isError(frame) != 0) break;
    // Most frames state the size of their content. In others, a block of four bytes can decode to at most 128
    // KiB.
    std::uint64_t content = ZSTD_getFrameContentSize(rest.data(), rest.size());
    if (content == ZSTD_CONTENTSIZE_ERROR) content = 0;  // to be skipped
    if (content == ZSTD_CONTENTSIZE_UNKNOWN) content = std::uint64_t{frame} / 4 << 17;
    bytes += std::min(content, constant.raw_bytes);
    rest = rest.subspan(frame);
  }
  if (bytes < constant.raw_bytes) {
    if (Status checked = CheckConstantData(constant); !checked) return checked;
    return Damaged(constant,
                   {"it decompresses to {} bytes at most, its type takes {}", bytes, constant.raw_bytes});
  }
#endif
  return {};
}

Status DecodeConstant(const Constant& constant, const ConstantCodecs& codecs, Span<std::byte> raw) {
  if (raw.size() != constant.raw_bytes) {
    return Fail(StatusCode::kInvalidArgument, "constant '{}' decodes to {} bytes, there is room for {}",
                constant.name, constant.raw_bytes, raw.size());
  }
  if (Status checked = CheckConstantData(constant); !checked) return checked;
  if (constant.codec == kCodecNone) {
    const Span<const std::byte> stored = constant.stored.view;
    if (stored.size() != raw.size()) {
      return Damaged(constant, {"it has {} bytes, its type takes {}", stored.size(), raw.size()});
    }
    if (!raw.empty()) std::memcpy(raw.data(), stored.data(), raw.size());
    return {};
  }
  if (constant.codec == kCodecZstd)
    return DecodeZstd(constant.stored.view, {"constant '{}'", constant.name}, raw);
  for (const ConstantCodec& codec : codecs) {
    if (codec.id != constant.codec) continue;
    const Span<const std::byte> stored = constant.stored.view;
    const int result = codec.decode(codec.context, stored.data(), stored.size(), raw.data(), raw.size());
    if (result == 0) return {};
    return Damaged(constant, {"codec {} of the host's says {}", codec.id, result});
  }
  return Fail(StatusCode::kUnsupported, "constant '{}' is stored with codec {}, which {}", constant.name,
              constant.codec,
              constant.codec < kFirstHostCodec ? "this library does not know: use a newer one"
                                               : "the host has not registered");
}

}  // namespace rewire
