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
/* For an output whose size shows only when it is made: `bytes` of memory on a device. */
REWIRE_API RewireStatus rewire_vm_set_output_capacity(RewireVm* vm, RewireOutput output, void* data,
                                                      uint64_t bytes, DLDevice device);
/* The same, with memory that is asked for when the size is known: on the VM's thread, at most once for each
 * tensor that the run makes for the output; the last answer is the output's memory. NULL fails the run with
 * kRewireOutOfMemory. */
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
