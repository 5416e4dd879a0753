/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/dlpack_versioned.h>. */
/* The versioned managed tensor of DLPack 1.0 and later. Debian's dlpack 0.6 does not declare it yet.
 *
 * The layout and the names are those of DLPack's specification, so pointers need no cast. If dlpack/dlpack.h
 * is 1.0 or later, this header only defines constants. */
#ifndef REWIRE_VM_DLPACK_VERSIONED_H_
#define REWIRE_VM_DLPACK_VERSIONED_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

#if !defined(DLPACK_MAJOR_VERSION)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags; /* bit 0: read-only; bit 1: a copy made for the export */
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif

#endif

#ifdef __cplusplus
namespace rewire {
inline constexpr uint32_t kDLPackMajor = 1;
inline constexpr uint64_t kDLPackReadOnly = 1;
inline constexpr uint64_t kDLPackIsCopied = 2;
}  // namespace rewire
#endif

#endif /* REWIRE_VM_DLPACK_VERSIONED_H_ */
