/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/linked_executable.h>. */
/* Opening executables that are linked into the program. Not a part of vm/c_api.h: the function is in the
 * archive librewire.a alone. */
#ifndef REWIRE_VM_C_API_LINKED_EXECUTABLE_H_
#define REWIRE_VM_C_API_LINKED_EXECUTABLE_H_

#include "rewire/executable_format/linked/linked_executable.h"
#include "rewire/vm/c_api/executable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens what vm-aot --bytecode has made a source of. A program that opens its executables in no other way has
 * neither reader nor verifier. Errors: kRewireInvalidArgument if it was not made for this library. */
RewireStatus rewire_executable_open_linked(const RewireLinkedExecutable* linked, RewireExecutable** out);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_LINKED_EXECUTABLE_H_ */
