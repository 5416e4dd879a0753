/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/outputs.h>. */
/* Outputs in the caller's memory. The host binds memory before a run. The run makes the output directly in it
 * where the program allows this, and otherwise copies it there. The values are those of an unbound run.
 *
 * A binding lasts until the output is bound again or cleared, and its memory must stay as long. After a
 * failed run the contents of the memory are unspecified. The rules in status.h and the threads of machine.h
 * hold. */
#ifndef REWIRE_VM_C_API_OUTPUTS_H_
#define REWIRE_VM_C_API_OUTPUTS_H_

#include "rewire/vm/c_api/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Binds an output. Errors: kRewireInvalidArgument if the dtype, shape or device cannot match the
 * signature. */
REWIRE_API RewireStatus rewire_vm_set_output(RewireVm* vm, RewireOutput output, const DLTensor* tensor);
/* Binds an output of the entry function, by name. */
REWIRE_API RewireStatus rewire_vm_set_output_by_name(RewireVm* vm, const char* name, const DLTensor* tensor);
/* Binds an output of the entry function, by index. */
REWIRE_API RewireStatus rewire_vm_set_output_by_index(RewireVm* vm, uint32_t leaf, const DLTensor* tensor);
/* Binds the memory of a value that is a tensor. The VM keeps a reference until the output is bound again. */
REWIRE_API RewireStatus rewire_vm_set_output_value(RewireVm* vm, RewireOutput output,
                                                   const RewireValue* tensor);
/* Binds `bytes` bytes of memory on a device, for an output whose size is known only during the run. */
REWIRE_API RewireStatus rewire_vm_set_output_capacity(RewireVm* vm, RewireOutput output, void* data,
                                                      uint64_t bytes, DLDevice device);
/* The same, with memory that the VM asks for once the size is known.
 *
 * `allocate` is called on the VM's thread, anew in each run. It is called at most once for each tensor that
 * may become the output. If the output turns out to be a tensor that was made elsewhere, it is called once
 * more. The last answer is the output's memory; earlier answers are no longer used. If it answers NULL for a
 * tensor that may become the output, that tensor is made elsewhere. If it answers NULL for the output itself,
 * the run fails with kRewireOutOfMemory. */
REWIRE_API RewireStatus rewire_vm_set_output_allocator(RewireVm* vm, RewireOutput output,
                                                       void* (*allocate)(void* context, uint64_t bytes,
                                                                         uint64_t alignment),
                                                       void* context, DLDevice device);
/* Lets an output take the memory of an input of the same function. The run then overwrites the input; use
 * this for state that is updated in place. After a failed run the contents of the input are unspecified. */
REWIRE_API RewireStatus rewire_vm_donate(RewireVm* vm, RewireInput input, RewireOutput output);
/* Removes the binding of an output, from the next run on. */
REWIRE_API RewireStatus rewire_vm_clear_output(RewireVm* vm, RewireOutput output);
/* Removes the bindings of all outputs of a function. NULL or "" means the entry function. */
REWIRE_API RewireStatus rewire_vm_clear_outputs(RewireVm* vm, const char* function);
/* If not 0, a run that would have to copy a bound output fails instead. */
REWIRE_API RewireStatus rewire_vm_require_zero_copy(RewireVm* vm, int32_t required);

/* Runs a function with these inputs into these outputs, for this call only. Other bindings are ignored
 * meanwhile. After the return, even after an error, the VM refers to none of the outputs' memory. */
REWIRE_API RewireStatus rewire_vm_call_into(RewireVm* vm, uint32_t function, const RewireValue* const* inputs,
                                            uint32_t input_count, const RewireOutput* outputs,
                                            const DLTensor* const* tensors, uint32_t output_count);
/* The same with managed tensors, which the call takes over in every case. When it returns, also after an
 * error, each tensor's deleter has been called once, on this thread. The host reads the results in the
 * deleter, or keeps the memory by another reference. */
REWIRE_API RewireStatus rewire_vm_call_into_dlpack(RewireVm* vm, uint32_t function,
                                                   const RewireValue* const* inputs, uint32_t input_count,
                                                   const RewireOutput* outputs,
                                                   DLManagedTensor* const* tensors, uint32_t output_count);
/* The same with versioned DLPack tensors. */
REWIRE_API RewireStatus rewire_vm_call_into_dlpack_versioned(
    RewireVm* vm, uint32_t function, const RewireValue* const* inputs, uint32_t input_count,
    const RewireOutput* outputs, DLManagedTensorVersioned* const* tensors, uint32_t output_count);

/* Run a function once, from any thread, without a VM: the program keeps a pool of VMs. `limits` may be NULL,
 * which means the defaults. `result` may be NULL; otherwise the caller owns *result. */
REWIRE_API RewireStatus rewire_program_run(const RewireProgram* program, uint32_t function,
                                           const RewireLimits* limits, const RewireValue* const* inputs,
                                           uint32_t input_count, RewireValue** result);
/* The same into these outputs, as rewire_vm_call_into. */
REWIRE_API RewireStatus rewire_program_run_into(const RewireProgram* program, uint32_t function,
                                                const RewireLimits* limits, const RewireValue* const* inputs,
                                                uint32_t input_count, const RewireOutput* outputs,
                                                const DLTensor* const* tensors, uint32_t output_count);

/* Tells what linking found out about an output. *rewired, which may be NULL, is 1 if every instruction that
 * can make the output makes it in the caller's memory. `text` explains this and has a line for each of
 * those instructions; it is written in the way of executable.h's texts. */
REWIRE_API RewireStatus rewire_program_output_plan(const RewireProgram* program, RewireOutput output,
                                                   int32_t* rewired, char* text, size_t capacity,
                                                   size_t* length);

/* The shape of a bound output in the last successful run. *rank receives the rank, and `dims` the first
 * `capacity` dimensions. So (NULL, 0) asks for the rank. */
REWIRE_API RewireStatus rewire_vm_output_shape(const RewireVm* vm, RewireOutput output, int64_t* dims,
                                               uint32_t capacity, uint32_t* rank);
/* Whether the last run made a bound output in place (*copied is 0) or copied it, and in that case why. The
 * reason is written in the way of executable.h's texts. */
REWIRE_API RewireStatus rewire_vm_output_report(const RewireVm* vm, RewireOutput output, int32_t* copied,
                                                char* reason, size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_OUTPUTS_H_ */
