/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/asynchronous.h>. */
/* Runs that go on after the call, for programs on devices (docs/devices.md). The rules in machine.h hold. */
#ifndef REWIRE_VM_C_API_ASYNCHRONOUS_H_
#define REWIRE_VM_C_API_ASYNCHRONOUS_H_

#include "rewire/vm/c_api/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs a function with the inputs and outputs that are set, and returns when all of its work has been given
 * to devices. Until rewire_vm_wait returns, memory of inputs and outputs must stay, inputs must not be
 * written, and results on the host are not ready. Every call that changes the VM waits by itself. NULL or ""
 * means the entry function. */
REWIRE_API RewireStatus rewire_vm_invoke_async(RewireVm* vm, const char* function);
/* Waits for what rewire_vm_invoke_async has started, and tells a failure of it. */
REWIRE_API RewireStatus rewire_vm_wait(RewireVm* vm);
/* Gives later work on a device to the caller's stream: a CUstream or a cl_command_queue. It must stay until
 * another is set or the VM is destroyed. Errors: kRewireInvalidArgument if the executable does not use the
 * device; kRewireUnsupported if the device has no streams. */
REWIRE_API RewireStatus rewire_vm_set_stream(RewireVm* vm, DLDevice device, void* stream);
/* Gives an event of the device's functions (kernel/device_api.h), which is reached when the device has done
 * what the VM has given it so far. The event is the VM's, and set anew by its next run. */
REWIRE_API RewireStatus rewire_vm_done_event(RewireVm* vm, DLDevice device, void** event);
/* Lets later work of the VM on the device wait for an event, without the host. */
REWIRE_API RewireStatus rewire_vm_wait_for_event(RewireVm* vm, DLDevice device, void* event);
/* Runs a function and records its work on the device. Later runs of it with the inputs and outputs that are
 * set replay that. Every call that changes the VM ends the recording. Errors: those of a run.
 * kRewireUnsupported if the host takes part in the run with more than shapes and constants, or writes an
 * output. Also if several devices do, if the device cannot record, or if an output has an allocator. */
REWIRE_API RewireStatus rewire_vm_record(RewireVm* vm, const char* function);
/* With `automatic` 1, a function that has run twice with the same inputs and outputs set is recorded by its
 * third run. All its outputs must be bound, none of them to an allocator. Later runs replay that. A run that
 * cannot be recorded goes on as it always does. 0 ends it. */
REWIRE_API RewireStatus rewire_vm_set_automatic_recording(RewireVm* vm, int32_t automatic);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_ASYNCHRONOUS_H_ */
