/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/machine.h>. */
/* VMs: they run the functions of a program. The rules in status.h hold.
 *
 * Threads: a VM serves one thread at a time. Different VMs of one program may run at once on different
 * threads. While a VM runs, other threads may call only rewire_vm_cancel. Invoking a running VM returns
 * kRewireBusy. After any error a VM is usable.
 *
 * Callbacks: while a call on a VM is going on, it may call code of the host: kernels, the observer, an
 * output's allocator, a deleter. This code may cancel the VM, read its last result, and use other VMs. Every
 * other call on the same VM returns kRewireBusy and changes nothing. The VM must not be destroyed. */
#ifndef REWIRE_VM_C_API_MACHINE_H_
#define REWIRE_VM_C_API_MACHINE_H_

#include "rewire/vm/c_api/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireVm RewireVm;

/* Makes a VM. This is cheap, because memory is taken when it is needed. `limits` may be NULL, which means the
 * defaults. */
REWIRE_API RewireStatus rewire_vm_make(const RewireProgram* program, const RewireLimits* limits,
                                       RewireVm** out);
/* Destroys a VM. It must not be running. Results that the host still holds stay valid. */
REWIRE_API void rewire_vm_destroy(RewireVm* vm);

/* --- inputs: checked against the signature when set; kept until set again or cleared --- */

typedef int32_t RewireInputMode;
enum {
  /* The memory must stay until the input is set again or cleared, or the VM is destroyed. Strided or
   * misaligned host memory is copied instead. */
  kRewireBorrow = 0,
  /* Copied at once; the caller may reuse its memory when the call returns. Host memory only. */
  kRewireCopy = 1
};

/* Sets an input. Errors: kRewireInvalidArgument, with function, input, expected and given. */
REWIRE_API RewireStatus rewire_vm_set_input(RewireVm* vm, RewireInput input, const DLTensor* tensor,
                                            RewireInputMode mode);
/* Sets an input of the entry function, by name. */
REWIRE_API RewireStatus rewire_vm_set_input_by_name(RewireVm* vm, const char* name, const DLTensor* tensor,
                                                    RewireInputMode mode);
/* Sets an input of the entry function, by index. */
REWIRE_API RewireStatus rewire_vm_set_input_by_index(RewireVm* vm, uint32_t index, const DLTensor* tensor,
                                                     RewireInputMode mode);
/* Takes over a DLPack tensor. Ownership passes in every case (value.h). The tensor is released once the input
 * is set again or cleared and no result refers to it. */
REWIRE_API RewireStatus rewire_vm_set_input_dlpack(RewireVm* vm, RewireInput input, DLManagedTensor* managed);
/* The same with a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_vm_set_input_dlpack_versioned(RewireVm* vm, RewireInput input,
                                                             DLManagedTensorVersioned* managed);
/* Shares a value: a tensor, an integer or a tree of ADTs. */
REWIRE_API RewireStatus rewire_vm_set_input_value(RewireVm* vm, RewireInput input, const RewireValue* value);
/* Sets all inputs of a function, in order. If one is wrong, those before it stay set. */
REWIRE_API RewireStatus rewire_vm_set_inputs(RewireVm* vm, uint32_t function, const DLTensor* const* tensors,
                                             uint32_t count, RewireInputMode mode);
/* Tells how an input is stored. *copied is 1 if it is a copy of what was given. `reason` says why, in the way
 * of executable.h's texts; for a borrowed input it may say that some kernels are given copies in every run.
 * Errors: kRewireInvalidArgument if the input is not set. */
REWIRE_API RewireStatus rewire_vm_input_report(const RewireVm* vm, RewireInput input, int32_t* copied,
                                               char* reason, size_t capacity, size_t* length);
/* Clears the inputs of a function. NULL or "" means the entry function. */
REWIRE_API RewireStatus rewire_vm_clear_inputs(RewireVm* vm, const char* function);

/* --- running --- */

/* Runs a function with the inputs that are set. NULL or "" means the entry function. The VM keeps the result
 * until the next run; a failed run leaves none. */
REWIRE_API RewireStatus rewire_vm_invoke(RewireVm* vm, const char* function);
/* The same by index, without a lookup. */
REWIRE_API RewireStatus rewire_vm_invoke_function(RewireVm* vm, uint32_t function);
/* Runs a function with these inputs, which are used for this call only. `result` may be NULL; otherwise the
 * caller owns *result. */
REWIRE_API RewireStatus rewire_vm_call(RewireVm* vm, uint32_t function, const RewireValue* const* inputs,
                                       uint32_t count, RewireValue** result);

/* --- outputs of the last run; kRewireInvalidArgument if there is no result --- */

/* Returns the whole result. */
REWIRE_API RewireStatus rewire_vm_result(const RewireVm* vm, RewireValue** out);
/* Returns one leaf of the result as a value, by index. Errors: kRewireNotFound. */
REWIRE_API RewireStatus rewire_vm_output(const RewireVm* vm, uint32_t leaf, RewireValue** out);
/* The same by name. */
REWIRE_API RewireStatus rewire_vm_output_by_name(const RewireVm* vm, const char* name, RewireValue** out);
/* Describes a leaf that is a tensor. The description is borrowed: data, shape and strides live until the next
 * run, a trim, or the end of the VM. Allocates nothing. */
REWIRE_API RewireStatus rewire_vm_output_tensor(const RewireVm* vm, uint32_t leaf, DLTensor* tensor);
/* Returns a leaf that is a tensor as a managed tensor, which keeps the memory alive. The caller calls its
 * deleter. */
REWIRE_API RewireStatus rewire_vm_output_dlpack(const RewireVm* vm, uint32_t leaf, DLManagedTensor** out);
/* The same as a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_vm_output_dlpack_versioned(const RewireVm* vm, uint32_t leaf,
                                                          DLManagedTensorVersioned** out);

/* --- limits and interruption --- */

/* Sets the limits from the next run on. NULL means the defaults. */
REWIRE_API RewireStatus rewire_vm_set_limits(RewireVm* vm, const RewireLimits* limits);
/* Ends the current run with kRewireCancelled. Does nothing if no run is going on, and never affects a later
 * run. Any thread may call it. */
REWIRE_API RewireStatus rewire_vm_cancel(RewireVm* vm);
/* Later runs fail with kRewireDeadlineExceeded if they are not finished this many nanoseconds from now.
 * Negative: no deadline. */
REWIRE_API RewireStatus rewire_vm_set_timeout(RewireVm* vm, int64_t nanoseconds);

/* --- memory: bytes from the program's allocator --- */

/* Bytes that the VM holds now: objects, stack, storage, its results and free lists. */
REWIRE_API RewireStatus rewire_vm_bytes_held(const RewireVm* vm, uint64_t* bytes);
/* The most bytes that the VM has held so far. */
REWIRE_API RewireStatus rewire_vm_bytes_peak(const RewireVm* vm, uint64_t* bytes);
/* Releases everything that no live value uses: free lists, stack, last result and the state of kernels. */
REWIRE_API RewireStatus rewire_vm_trim(RewireVm* vm);

/* --- observation --- */

/* An instruction that is about to be executed. Valid during the call. */
typedef struct RewireInstructionEvent {
  uint32_t struct_size; /* size of the struct that this library fills in */
  uint32_t function;
  uint32_t pc;    /* index of the word in the function's code; see rewire_executable_instruction_text */
  uint32_t depth; /* active calls; 1 in the invoked function */
} RewireInstructionEvent;

/* A kernel call that has returned. Valid during the call. */
typedef struct RewireKernelEvent {
  uint32_t struct_size;
  uint32_t function;
  uint32_t pc;
  uint32_t kernel; /* index for rewire_executable_kernel */
  const RewireFFIAny* args;
  uint32_t arg_count;
  int32_t ok;
  int64_t start_ns; /* nanoseconds of the steady clock */
  int64_t end_ns;
} RewireKernelEvent;

/* Functions that are told what a VM executes. Either may be NULL. They run on the VM's thread. See
 * "Callbacks" at the top of this file. */
typedef struct RewireObserver {
  uint32_t struct_size;
  void* context; /* must stay until the observer is replaced or the VM destroyed */
  void (*on_instruction)(void* context, const RewireInstructionEvent* event);
  void (*on_kernel)(void* context, const RewireKernelEvent* event);
} RewireObserver;

/* Sets the observer from the next run on. The struct is copied. NULL removes it. An observer makes the VM
 * slower. */
REWIRE_API RewireStatus rewire_vm_set_observer(RewireVm* vm, const RewireObserver* observer);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_MACHINE_H_ */
