/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a known size: what a run needs at most, and VMs that live in it (docs/embedding.md, "Bounded
 * memory"). The rules in status.h hold. */
#ifndef REWIRE_VM_C_API_MEMORY_H_
#define REWIRE_VM_C_API_MEMORY_H_

#include "vm/c_api/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest value of a symbolic dimension. */
typedef struct RewireMaxDim {
  const char* name;
  int64_t size;
} RewireMaxDim;

/* How much memory a run needs at most, in bytes: rewire::MemoryBound says what each figure holds for. */
typedef struct RewireMemoryBound {
  uint32_t struct_size;  /* the caller's sizeof; this library fills in what fits */
  uint64_t bytes;        /* a run of a new VM: rewire_vm_bytes_peak */
  uint64_t static_bytes; /* memory for rewire_vm_make_static */
  uint64_t arena_bytes;  /* size for rewire_arena_make */
  uint64_t storage;
  uint64_t objects;
  uint64_t stack;
  uint64_t workspace;
  uint64_t device;
  uint64_t undeclared; /* kernels whose workspace is not declared, and not counted */
} RewireMemoryBound;

/* In librewire_prepare. `function` NULL or "": the entry. `outputs_bound`: 1 when all outputs are bound to
 * the caller's memory. `max_dims` may be NULL when `count` is 0. kRewireUnsupported, saying why and where,
 * when there is no bound.
 */
REWIRE_API RewireStatus rewire_program_memory_bound(const RewireProgram* program, const char* function,
                                                    int32_t outputs_bound, const RewireMaxDim* max_dims,
                                                    uint32_t count, RewireMemoryBound* bound);

/* A VM that takes all its memory, its results' included, from `bytes` bytes at `memory`, which must stay
 * until the VM and everything that came from it have gone. Best aligned to 128 bytes. The handle itself is
 * made with malloc. kRewireOutOfMemory when not even the VM fits; `limits` may be NULL. */
REWIRE_API RewireStatus rewire_vm_make_static(const RewireProgram* program, const RewireLimits* limits,
                                              void* memory, uint64_t bytes, RewireVm** out);

/* Memory for the runs of several VMs that never run at once; a run while another goes on is kRewireBusy. VMs
 * keep it. Any thread. */
typedef struct RewireArena RewireArena;
/* `allocator` may be NULL: malloc. */
REWIRE_API RewireStatus rewire_arena_make(uint64_t bytes, const RewireAllocator* allocator,
                                          RewireArena** out);
REWIRE_API void rewire_arena_destroy(RewireArena* arena);
/* A VM whose runs take place in the arena. */
REWIRE_API RewireStatus rewire_vm_make_in_arena(const RewireProgram* program, const RewireLimits* limits,
                                                const RewireArena* arena, RewireVm** out);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_MEMORY_H_ */
