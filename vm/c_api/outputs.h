/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs in the caller's memory: bound before a run, they are made there where the program allows it, and
 * copied there otherwise; the values are those of an unbound run. A binding stays until the output is bound
 * again or cleared, and so must its memory. After a failed run what lies there is unspecified. The rules in
 * status.h and the threads of machine.h hold. */
#ifndef REWIRE_VM_C_API_OUTPUTS_H_
#define REWIRE_VM_C_API_OUTPUTS_H_

#include "vm/c_api/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* kRewireInvalidArgument: a dtype, shape or device that cannot match the signature. */
REWIRE_API RewireStatus rewire_vm_set_output(RewireVm* vm, RewireOutput output, const DLTensor* tensor);
/* By name, of the entry function. */
REWIRE_API RewireStatus rewire_vm_set_output_by_name(RewireVm* vm, const char* name, const DLTensor* tensor);
/* By position, of the entry function. */
REWIRE_API RewireStatus rewire_vm_set_output_by_index(RewireVm* vm, uint32_t leaf, const DLTensor* tensor);
/* The memory of a value that is a tensor; the VM keeps a reference until the output is bound again. */
REWIRE_API RewireStatus rewire_vm_set_output_value(RewireVm* vm, RewireOutput output,
                                                   const RewireValue* tensor);
/* For an output whose size shows only when it is made: `bytes` of memory on a device. */
REWIRE_API RewireStatus rewire_vm_set_output_capacity(RewireVm* vm, RewireOutput output, void* data,
                                                      uint64_t bytes, DLDevice device);
/* The same, with memory that is asked for when the size is known: on the VM's thread, in each run anew, at
 * most once for each tensor that may become the output and once more when one that was made elsewhere has.
 * The last answer is the output's memory, earlier ones are not used any more. Where it answers NULL, the
 * tensor is made elsewhere; NULL for the output itself fails the run with kRewireOutOfMemory. */
REWIRE_API RewireStatus rewire_vm_set_output_allocator(RewireVm* vm, RewireOutput output,
                                                       void* (*allocate)(void* context, uint64_t bytes,
                                                                         uint64_t alignment),
                                                       void* context, DLDevice device);
/* The output takes the memory of an input of the same function, which the run then overwrites: state updated
 * in place. What the input holds after a failed run is unspecified. */
REWIRE_API RewireStatus rewire_vm_donate(RewireVm* vm, RewireInput input, RewireOutput output);
/* From the next run on the output is not bound. */
REWIRE_API RewireStatus rewire_vm_clear_output(RewireVm* vm, RewireOutput output);
/* All of a function; NULL or "" is the entry. */
REWIRE_API RewireStatus rewire_vm_clear_outputs(RewireVm* vm, const char* function);
/* Not 0: a run that would have to copy a bound output fails instead. */
REWIRE_API RewireStatus rewire_vm_require_zero_copy(RewireVm* vm, int32_t required);

/* Runs a function over these inputs into these outputs, for this call alone: what is bound otherwise is set
 * aside. When it has returned, also after an error, the VM refers to none of the outputs' memory. */
REWIRE_API RewireStatus rewire_vm_call_into(RewireVm* vm, uint32_t function, const RewireValue* const* inputs,
                                            uint32_t input_count, const RewireOutput* outputs,
                                            const DLTensor* const* tensors, uint32_t output_count);
/* The same over memory that is handed over with the call, in every case: when it has returned, also after an
 * error, each tensor's deleter has been called once, on this thread. The host reads what was written in the
 * deleter, or keeps the memory by another reference of its own. */
REWIRE_API RewireStatus rewire_vm_call_into_dlpack(RewireVm* vm, uint32_t function,
                                                   const RewireValue* const* inputs, uint32_t input_count,
                                                   const RewireOutput* outputs,
                                                   DLManagedTensor* const* tensors, uint32_t output_count);
/* The same with versioned DLPack tensors. */
REWIRE_API RewireStatus rewire_vm_call_into_dlpack_versioned(
    RewireVm* vm, uint32_t function, const RewireValue* const* inputs, uint32_t input_count,
    const RewireOutput* outputs, DLManagedTensorVersioned* const* tensors, uint32_t output_count);

/* Run a function once, from any thread, without a VM of the caller's: VMs are pooled behind the program.
 * `limits` may be NULL: the defaults. *result, which is the caller's, may be NULL. */
REWIRE_API RewireStatus rewire_program_run(const RewireProgram* program, uint32_t function,
                                           const RewireLimits* limits, const RewireValue* const* inputs,
                                           uint32_t input_count, RewireValue** result);
/* The same into these outputs: as rewire_vm_call_into. */
REWIRE_API RewireStatus rewire_program_run_into(const RewireProgram* program, uint32_t function,
                                                const RewireLimits* limits, const RewireValue* const* inputs,
                                                uint32_t input_count, const RewireOutput* outputs,
                                                const DLTensor* const* tensors, uint32_t output_count);

/* What linking has found out about an output: *rewired is 1 when every instruction that can make it does so
 * in the caller's memory. `text`, written as executable.h's texts are, says it in words and has a line for
 * each of those instructions. `rewired` may be NULL. */
REWIRE_API RewireStatus rewire_program_output_plan(const RewireProgram* program, RewireOutput output,
                                                   int32_t* rewired, char* text, size_t capacity,
                                                   size_t* length);

/* The shape of a bound output in the last successful run. *rank gets the rank; dims the first `capacity`
 * dimensions, so that (NULL, 0) asks for the rank. */
REWIRE_API RewireStatus rewire_vm_output_shape(const RewireVm* vm, RewireOutput output, int64_t* dims,
                                               uint32_t capacity, uint32_t* rank);
/* Whether the last run made a bound output in place (*copied is 0) or copied it, and then why: the reason is
 * written as executable.h's texts are. */
REWIRE_API RewireStatus rewire_vm_output_report(const RewireVm* vm, RewireOutput output, int32_t* copied,
                                                char* reason, size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_OUTPUTS_H_ */
