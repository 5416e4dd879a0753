// SPDX-License-Identifier: Apache-2.0
// A tensor in host memory as files give and take it: compact, row-major, little-endian.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/shared_bytes.h"
#include "base/span.h"
#include "base/status.h"

namespace rewire {

// Copies share the bytes. `bytes.view` is aligned for the element type and exactly CompactBytes() long.
struct HostTensor {
  DLDataType dtype = {};
  std::vector<std::int64_t> shape;
  SharedBytes bytes;
};

struct NamedTensor {
  std::string name;
  HostTensor tensor;
};

// Bytes of a compact tensor. kInvalidArgument: a negative dimension, or a product beyond 64 bits.
Result<std::uint64_t> CompactBytes(DLDataType dtype, Span<const std::int64_t> shape);

// "f32[3, 4]".
std::string TensorTypeText(DLDataType dtype, Span<const std::int64_t> shape);

// Bytes that own themselves, 64-byte aligned: `*data` is where to fill them in.
SharedBytes AllocateBytes(std::size_t size, std::byte** data);
SharedBytes CopyBytes(Span<const std::byte> bytes);

// `bytes` itself where it is aligned for the element type, otherwise a copy that is.
SharedBytes AlignedFor(DLDataType dtype, const SharedBytes& bytes);

}  // namespace rewire
