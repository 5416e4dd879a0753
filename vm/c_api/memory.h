/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/memory.h>. */
/* Bounded memory: how much memory a run can need, and VMs that live in memory of that size
 * (docs/embedding.md, "Bounded memory"). The rules in status.h hold. */
#ifndef REWIRE_VM_C_API_MEMORY_H_
#define REWIRE_VM_C_API_MEMORY_H_

#include "rewire/vm/c_api/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest value of a symbolic dimension. */
typedef struct RewireMaxDim {
  const char* name;
  int64_t size;
} RewireMaxDim;

/* The most memory that a run needs, in bytes. rewire::MemoryBound explains each figure. */
typedef struct RewireMemoryBound {
  uint32_t struct_size;  /* the caller's sizeof; this library fills in what fits */
  uint64_t bytes;        /* of a run of a new VM; rewire_vm_bytes_peak never exceeds it */
  uint64_t static_bytes; /* memory for rewire_vm_make_static */
  uint64_t arena_bytes;  /* size for rewire_arena_make */
  uint64_t storage;
  uint64_t objects;
  uint64_t stack;
  uint64_t workspace;
  uint64_t device;
  uint64_t undeclared; /* number of kernels whose workspace is not declared and not counted */
} RewireMemoryBound;

/* Computes the bound for a function; NULL or "" means the entry function. In librewire_prepare.
 * `outputs_bound` is 1 if all outputs are bound to the caller's memory. `max_dims` may be NULL if `count` is
 * 0. Errors: kRewireUnsupported, with reason and place, if there is no bound. */
REWIRE_API RewireStatus rewire_program_memory_bound(const RewireProgram* program, const char* function,
                                                    int32_t outputs_bound, const RewireMaxDim* max_dims,
                                                    uint32_t count, RewireMemoryBound* bound);

/* The same for the memory of one device: the most bytes that a run takes there, 0 if it takes none. `device`
 * is its index in the executable's table (rewire_executable_device). In librewire_prepare. Errors: also
 * kRewireInvalidArgument for an index that the table does not have, and for the host. */
REWIRE_API RewireStatus rewire_program_device_memory_bound(const RewireProgram* program, const char* function,
                                                           int32_t outputs_bound,
                                                           const RewireMaxDim* max_dims, uint32_t count,
                                                           uint32_t device, uint64_t* bytes);

/* Makes a VM that takes all its memory, results included, from the `bytes` bytes at `memory`. The memory must
 * stay until the VM and everything that came from it are gone. It should be aligned to 128 bytes. Only the
 * handle itself is made with malloc. `limits` may be NULL. Errors: kRewireOutOfMemory if the memory is too
 * small for the VM itself. */
REWIRE_API RewireStatus rewire_vm_make_static(const RewireProgram* program, const RewireLimits* limits,
                                              void* memory, uint64_t bytes, RewireVm** out);

/* Memory for the runs of several VMs that never run at the same time. Starting a run while another one is
 * going on returns kRewireBusy. The VMs keep the arena alive. Any thread may use it. */
typedef struct RewireArena RewireArena;
/* `allocator` may be NULL, which means malloc. */
REWIRE_API RewireStatus rewire_arena_make(uint64_t bytes, const RewireAllocator* allocator,
                                          RewireArena** out);
REWIRE_API void rewire_arena_destroy(RewireArena* arena);
/* Makes a VM whose runs take their memory from the arena. */
REWIRE_API RewireStatus rewire_vm_make_in_arena(const RewireProgram* program, const RewireLimits* limits,
                                                const RewireArena* arena, RewireVm** out);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_MEMORY_H_ */
