// SPDX-License-Identifier: Apache-2.0
// The versioned managed tensor of DLPack 1.0 and later, which Debian's dlpack 0.6 does not declare yet.
// Layout by DLPack's specification. Global namespace and DLPack's own names for the tag, so that pointers
// need no cast; include it only where dlpack/dlpack.h is older than 1.0.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

#if !defined(DLPACK_MAJOR_VERSION)

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  std::uint64_t flags;  // bit 0: read-only
  DLTensor dl_tensor;
};

#endif

namespace rewire {
inline constexpr std::uint32_t kDLPackMajor = 1;
inline constexpr std::uint64_t kDLPackReadOnly = 1;
}  // namespace rewire
