/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/state.h>. */
/* State: the inputs of a function that are set, as bytes or as a file (docs/state.md). Donated inputs hold
 * what the last run wrote. The same VM, another one, or a C program of vm-aot (compiler/aot/state.h) goes on
 * from there. All functions are in librewire_prepare. The rules in status.h hold. */
#ifndef REWIRE_VM_C_API_STATE_H_
#define REWIRE_VM_C_API_STATE_H_

#include "rewire/vm/c_api/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the state to `bytes` and its size to *size. `bytes` may be NULL: then only the size is told. NULL or
 * "" as `function` means the entry function. Errors: kRewireInvalidArgument if `capacity` is too small; *size
 * is set then, too. kRewireUnsupported, with the input's name, for a closure, a storage, or a tree whose
 * fields the signature does not name. */
REWIRE_API RewireStatus rewire_vm_state(const RewireVm* vm, const char* function, void* bytes,
                                        size_t capacity, size_t* size);
/* Sets the inputs that a state has, to copies, and leaves the others. `function`, if it is not NULL, gets the
 * index of the function that they belong to. The executable must be the one that the state was saved with.
 * Errors: kRewireInvalidFile for damaged bytes and for other files; kRewireUnsupported for another version;
 * kRewireInvalidArgument if the state is another executable's, or a tensor does not match the signature. No
 * input has then changed. */
REWIRE_API RewireStatus rewire_vm_set_state(RewireVm* vm, const void* bytes, size_t size, uint32_t* function);
/* Writes the state to a file, whole or not at all. Errors: as rewire_vm_state, and kRewireIo. */
REWIRE_API RewireStatus rewire_vm_save_state(const RewireVm* vm, const char* function, const char* path);
/* Sets the inputs that the state of a file has. Errors: as rewire_vm_set_state, kRewireNotFound, kRewireIo.
 */
REWIRE_API RewireStatus rewire_vm_load_state(RewireVm* vm, const char* path, uint32_t* function);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_STATE_H_ */
