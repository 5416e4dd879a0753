// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/compress_constant.h"

#ifndef REWIRE_NO_ZSTD
#include <zstd.h>
#endif

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace rewire {

Status CompressConstant(Constant* constant, int level) {
#ifdef REWIRE_NO_ZSTD
  (void)level;
  return Fail(StatusCode::kUnsupported,
              "constant '{}' cannot be compressed: this library was built without zstd (REWIRE_WITH_ZSTD)",
              constant->name);
#else
  if (constant->kind != ConstantKind::kData || constant->codec != kCodecNone) return {};
  const Span<const std::byte> raw = constant->stored.view;
  auto frame = std::make_shared<std::vector<std::byte> >(ZSTD_compressBound(raw.size()));
  const std::size_t size = ZSTD_compress(frame->data(), frame->size(), raw.data(), raw.size(), level);
  if (ZSTD_isError(size) != 0) {
    return Fail(StatusCode::kInvalidArgument, "constant '{}' cannot be compressed: {}", constant->name,
                ZSTD_getErrorName(size));
  }
  if (size >= raw.size()) return {};
  frame->resize(size);
  frame->shrink_to_fit();
  constant->codec = kCodecZstd;
  constant->stored.view = {frame->data(), frame->size()};
  constant->stored.owner = std::move(frame);
  constant->checksum = 0;
  return {};
#endif
}

}  // namespace rewire
