// SPDX-License-Identifier: Apache-2.0
//
// A tensor in host memory as files contain it: compact, row-major, little-endian.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"

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

// Bytes of a compact tensor. Errors: kInvalidArgument for a negative dimension or a product beyond 64 bits.
Result<std::uint64_t> CompactBytes(DLDataType dtype, Span<const std::int64_t> shape);

// "f32[3, 4]".
std::string TensorTypeText(DLDataType dtype, Span<const std::int64_t> shape);

// Allocates bytes that own themselves, 64-byte aligned. Fill them in through `*data`.
SharedBytes AllocateBytes(std::size_t size, std::byte** data);
SharedBytes CopyBytes(Span<const std::byte> bytes);

// Returns `bytes` if it is aligned for the element type, otherwise an aligned copy.
SharedBytes AlignedFor(DLDataType dtype, const SharedBytes& bytes);

}  // namespace rewire
