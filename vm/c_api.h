/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api.h>. */
/* The whole C API: everything that a host in C, or a binding for another language, needs. Plain C11, and C++.
 *
 *   RewireExecutable* executable = NULL;
 *   RewireProgram* program = NULL;
 *   RewireVm* vm = NULL;
 *   rewire_executable_open("model.rwx", NULL, &executable);
 *   rewire_program_link(executable, NULL, &program);
 *   rewire_vm_make(program, NULL, &vm);
 *   rewire_vm_set_input_by_name(vm, "image", &image, kRewireBorrow);
 *   rewire_vm_invoke(vm, NULL);
 *   rewire_vm_output_tensor(vm, 0, &scores);
 *
 * c_api/status.h has the rules that hold for every function. docs/embedding.md is the guide. */
#ifndef REWIRE_VM_C_API_H_
#define REWIRE_VM_C_API_H_

#include "rewire/vm/c_api/asynchronous.h"
#include "rewire/vm/c_api/executable.h"
#include "rewire/vm/c_api/machine.h"
#include "rewire/vm/c_api/memory.h"
#include "rewire/vm/c_api/outputs.h"
#include "rewire/vm/c_api/parameters.h"
#include "rewire/vm/c_api/program.h"
#include "rewire/vm/c_api/state.h"
#include "rewire/vm/c_api/status.h"
#include "rewire/vm/c_api/value.h"

#endif /* REWIRE_VM_C_API_H_ */
