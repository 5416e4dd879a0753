/* SPDX-License-Identifier: Apache-2.0 */
/* VMs: they run a program's functions. One thread at a time uses a VM; different VMs of one program run at
 * once on different threads. rewire_vm_cancel alone may be called from another thread while a VM runs;
 * invoking a running VM is kRewireBusy. After any error a VM is usable. The rules in status.h hold. */
#ifndef REWIRE_VM_C_API_MACHINE_H_
#define REWIRE_VM_C_API_MACHINE_H_

#include "vm/c_api/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireVm RewireVm;

/* Cheap: memory is taken when it is needed. `limits` may be NULL: the defaults. */
REWIRE_API RewireStatus rewire_vm_make(const RewireProgram* program, const RewireLimits* limits,
                                       RewireVm** out);
/* Results that are still held stay valid. Not while the VM runs. */
REWIRE_API void rewire_vm_destroy(RewireVm* vm);

/* --- inputs: kept until set again or cleared; checked against the signature when set --- */

typedef int32_t RewireInputMode;
enum {
  /* The memory must stay until the input is set again or cleared or the VM is destroyed. Strided or
   * misaligned host memory is copied instead. */
  kRewireBorrow = 0,
  /* Copied now; the caller's memory is free when the call returns. Host memory only. */
  kRewireCopy = 1
};

/* kRewireInvalidArgument names function, input, expected and given. */
REWIRE_API RewireStatus rewire_vm_set_input(RewireVm* vm, RewireInput input, const DLTensor* tensor,
                                            RewireInputMode mode);
/* By name, of the entry function. */
REWIRE_API RewireStatus rewire_vm_set_input_by_name(RewireVm* vm, const char* name, const DLTensor* tensor,
                                                    RewireInputMode mode);
/* By position, of the entry function. */
REWIRE_API RewireStatus rewire_vm_set_input_by_index(RewireVm* vm, uint32_t index, const DLTensor* tensor,
                                                     RewireInputMode mode);
/* Takes over a DLPack tensor, in every case (value.h); it is released when the input is set again or cleared
 * and no result refers to it. */
REWIRE_API RewireStatus rewire_vm_set_input_dlpack(RewireVm* vm, RewireInput input, DLManagedTensor* managed);
/* The same with a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_vm_set_input_dlpack_versioned(RewireVm* vm, RewireInput input,
                                                             DLManagedTensorVersioned* managed);
/* Shares a value: a tensor, an integer, a tree of ADTs. */
REWIRE_API RewireStatus rewire_vm_set_input_value(RewireVm* vm, RewireInput input, const RewireValue* value);
/* All inputs of a function, in order. Those before a wrong one stay set. */
REWIRE_API RewireStatus rewire_vm_set_inputs(RewireVm* vm, uint32_t function, const DLTensor* const* tensors,
                                             uint32_t count, RewireInputMode mode);
/* How an input that is set lies before the program: *copied is 1 when it is a copy of what was given.
 * `reason`, written as executable.h's texts are, says why; also, of one that is no copy, that some kernels
 * need copies of it. kRewireInvalidArgument when the input is not set. */
REWIRE_API RewireStatus rewire_vm_input_report(const RewireVm* vm, RewireInput input, int32_t* copied,
                                               char* reason, size_t capacity, size_t* length);
/* `function`: a name; NULL or "" is the entry. */
REWIRE_API RewireStatus rewire_vm_clear_inputs(RewireVm* vm, const char* function);

/* --- running --- */

/* Runs a function over its set inputs. NULL or "" is the entry. The result is kept until the next run;
 * a run that fails leaves none. */
REWIRE_API RewireStatus rewire_vm_invoke(RewireVm* vm, const char* function);
/* By index: nothing is looked up. */
REWIRE_API RewireStatus rewire_vm_invoke_function(RewireVm* vm, uint32_t function);
/* Runs a function over these inputs, for this call alone. *result, which is the caller's, may be NULL. */
REWIRE_API RewireStatus rewire_vm_call(RewireVm* vm, uint32_t function, const RewireValue* const* inputs,
                                       uint32_t count, RewireValue** result);

/* --- outputs: of the last run; kRewireInvalidArgument when there is no result --- */

/* The whole result. */
REWIRE_API RewireStatus rewire_vm_result(const RewireVm* vm, RewireValue** out);
/* One leaf of it, by position, as a value. kRewireNotFound. */
REWIRE_API RewireStatus rewire_vm_output(const RewireVm* vm, uint32_t leaf, RewireValue** out);
/* The same by name. */
REWIRE_API RewireStatus rewire_vm_output_by_name(const RewireVm* vm, const char* name, RewireValue** out);
/* Describes a leaf that is a tensor. Borrowed: data, shape and strides live until the next run, a trim, or
 * the VM's end. Takes no memory. */
REWIRE_API RewireStatus rewire_vm_output_tensor(const RewireVm* vm, uint32_t leaf, DLTensor* tensor);
/* A leaf that is a tensor as a managed one, which keeps the memory; the caller calls its deleter. */
REWIRE_API RewireStatus rewire_vm_output_dlpack(const RewireVm* vm, uint32_t leaf, DLManagedTensor** out);
/* The same as a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_vm_output_dlpack_versioned(const RewireVm* vm, uint32_t leaf,
                                                          DLManagedTensorVersioned** out);

/* --- limits and interruption --- */

/* From the next run on. NULL: the defaults. */
REWIRE_API RewireStatus rewire_vm_set_limits(RewireVm* vm, const RewireLimits* limits);
/* A run that is going on, or the next one when none is, ends with kRewireCancelled. Any thread. */
REWIRE_API RewireStatus rewire_vm_cancel(RewireVm* vm);
/* Runs end with kRewireDeadlineExceeded once so many nanoseconds from now have passed. Negative: no deadline.
 */
REWIRE_API RewireStatus rewire_vm_set_timeout(RewireVm* vm, int64_t nanoseconds);

/* --- memory, in bytes from the program's allocator --- */

/* What the VM holds now: objects, stack, storage, its results, free lists. */
REWIRE_API RewireStatus rewire_vm_bytes_held(const RewireVm* vm, uint64_t* bytes);
/* The most that it has held so far. */
REWIRE_API RewireStatus rewire_vm_bytes_peak(const RewireVm* vm, uint64_t* bytes);
/* Gives back everything that no live value uses: free lists, stack, last result, kernels' state. */
REWIRE_API RewireStatus rewire_vm_trim(RewireVm* vm);

/* --- observation --- */

/* An instruction about to be executed. Valid during the call. */
typedef struct RewireInstructionEvent {
  uint32_t struct_size; /* what this library fills in */
  uint32_t function;
  uint32_t pc;    /* word in the function's code: rewire_executable_instruction_text */
  uint32_t depth; /* active calls, 1 for the invoked function */
} RewireInstructionEvent;

/* A kernel call that has returned. Valid during the call. */
typedef struct RewireKernelEvent {
  uint32_t struct_size;
  uint32_t function;
  uint32_t pc;
  uint32_t kernel; /* rewire_executable_kernel */
  const RewireFFIAny* args;
  uint32_t arg_count;
  int32_t ok;
  int64_t start_ns; /* steady clock */
  int64_t end_ns;
} RewireKernelEvent;

/* Either function may be NULL. They run on the VM's thread and must not use the VM. */
typedef struct RewireObserver {
  uint32_t struct_size;
  void* context; /* must stay until the observer is replaced or the VM destroyed */
  void (*on_instruction)(void* context, const RewireInstructionEvent* event);
  void (*on_kernel)(void* context, const RewireKernelEvent* event);
} RewireObserver;

/* From the next run on; the struct is copied. NULL: nobody is told. Observing slows the VM down. */
REWIRE_API RewireStatus rewire_vm_set_observer(RewireVm* vm, const RewireObserver* observer);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_MACHINE_H_ */
