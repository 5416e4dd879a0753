/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: executables with their kernels resolved and their parameters bound. Immutable; any number of
 * threads and VMs may use one handle at once. The rules in status.h hold. */
#ifndef REWIRE_VM_C_API_PROGRAM_H_
#define REWIRE_VM_C_API_PROGRAM_H_

#include "vm/c_api/executable.h"
#include "vm/c_api/parameters.h"
#include "vm/c_api/value.h"
#include "vm/device/device_api.h"
#include "vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireProgram RewireProgram;
/* What a program is linked with. Filled in on one thread; may be used for many programs and destroyed after
 * linking. */
typedef struct RewireLinkOptions RewireLinkOptions;

/* The defaults: stock kernels, serial execution, malloc, no log. */
REWIRE_API RewireStatus rewire_link_options_make(RewireLinkOptions** out);
/* Gives the options back; what programs use of them stays. NULL: nothing. */
REWIRE_API void rewire_link_options_destroy(RewireLinkOptions* options);

/* --- kernels: sources are asked from the last added to the first --- */

/* A directory that rewire_link_options_add_library looks in first. */
REWIRE_API RewireStatus rewire_link_options_add_library_path(RewireLinkOptions* options,
                                                             const char* directory);
/* Loads a shared library of kernels, which runs its code. A name without a slash is looked up in the
 * directories above, beside Rewire's own kernel libraries, then as dlopen does. kRewireNotFound with every
 * place tried, kRewireUnsupported, kRewireIo. */
REWIRE_API RewireStatus rewire_link_options_add_library(RewireLinkOptions* options, const char* path);
/* A function of this process as the kernel `name`. It is called with `handle` first, on many threads at once;
 * to fail it calls rewire_kernel_api()->set_error and returns -1. `deleter(handle)` is called once, on any
 * thread, when options and programs no longer need it; on failure before this returns. It may be NULL. */
REWIRE_API RewireStatus rewire_link_options_add_kernel(RewireLinkOptions* options, const char* name,
                                                       RewirePackedFunction function, void* handle,
                                                       void (*deleter)(void* handle));
/* A table of kernels that is linked into this process. It must outlive the programs. `description` is for
 * messages; NULL: "a table of the host's". */
REWIRE_API RewireStatus rewire_link_options_add_table(RewireLinkOptions* options,
                                                      const RewireKernelTable* table,
                                                      const char* description);
/* Whether Rewire's stock library is looked in for kernels named `rewire.` (1, the default) or not (0). */
REWIRE_API RewireStatus rewire_link_options_use_stock_kernels(RewireLinkOptions* options, int32_t use);
/* What kernels may ask of the VM (vm/kernel/kernel.h). Static storage. */
REWIRE_API const RewireKernelApi* rewire_kernel_api(void);

/* --- parameters: by name; the last one given for a name counts --- */

/* All of a set. The options keep a reference; adding to the set later does not change them. */
REWIRE_API RewireStatus rewire_link_options_add_parameters(RewireLinkOptions* options,
                                                           const RewireParameterSet* set);
/* Whether parameters that the executable does not have are left alone (1) or an error (0, the default). */
REWIRE_API RewireStatus rewire_link_options_ignore_extra_parameters(RewireLinkOptions* options,
                                                                    int32_t ignore);
/* A decoder of compressed constants besides zstd; `context` must stay as long as programs are linked with the
 * options. */
REWIRE_API RewireStatus rewire_link_options_add_codec(RewireLinkOptions* options, const RewireCodec* codec);
/* The value must be a tensor; it is shared. Tensors in the caller's memory: rewire_value_wrap_tensor. */
REWIRE_API RewireStatus rewire_link_options_add_parameter(RewireLinkOptions* options, const char* name,
                                                          const RewireValue* tensor);
/* Refers to host memory, which must outlive every program linked with it and their results. */
REWIRE_API RewireStatus rewire_link_options_borrow_parameter(RewireLinkOptions* options, const char* name,
                                                             const DLTensor* tensor);
/* Takes over a DLPack tensor, in every case (value.h). */
REWIRE_API RewireStatus rewire_link_options_take_parameter(RewireLinkOptions* options, const char* name,
                                                           DLManagedTensor* managed);

/* --- the host's services --- */

/* All memory of the program's VMs: objects, stack, storage, results. The functions may be called from any
 * thread at once, and must stay until the last VM and the last result are gone. */
typedef struct RewireAllocator {
  uint32_t struct_size;
  void* context;
  /* `size` bytes at a multiple of `alignment` (a power of two); NULL when there are none. */
  void* (*allocate)(void* context, size_t size, size_t alignment);
  /* Takes back what allocate gave, with the same size and alignment. */
  void (*deallocate)(void* context, void* pointer, size_t size, size_t alignment);
} RewireAllocator;
/* The struct is copied; both functions are needed. */
REWIRE_API RewireStatus rewire_link_options_set_allocator(RewireLinkOptions* options,
                                                          const RewireAllocator* allocator);

/* What kernels' parallel loops run on. */
typedef struct RewireThreadPool {
  uint32_t struct_size;
  int32_t thread_count; /* that can work at once, the caller's included; at least 1 */
  void* context;
  /* Splits [begin, end) into ranges of at least `grain`, calls body(data, first, last) on each, and returns
   * when all are done. The calling thread may take part. Several threads may call at once, also from inside a
   * body. */
  void (*parallel_for)(void* context, int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* data, int64_t begin, int64_t end), void* data);
  /* Called once, on any thread, when no program needs the pool any more. May be NULL. */
  void (*destroy)(void* context);
} RewireThreadPool;
/* On failure `destroy` is not called. */
REWIRE_API RewireStatus rewire_link_options_set_thread_pool(RewireLinkOptions* options,
                                                            const RewireThreadPool* pool);
/* A pool of Rewire's with so many threads in all, shared by the programs linked with these options; 1 is
 * serial. */
REWIRE_API RewireStatus rewire_link_options_set_thread_count(RewireLinkOptions* options, int32_t threads);

/* Gets messages that are no errors, on the thread that has something to say; `message` has `size` bytes and
 * is valid during the call. NULL: nobody gets them. `context` must stay as long as a program or VM does. */
REWIRE_API RewireStatus rewire_link_options_set_log(RewireLinkOptions* options,
                                                    void (*write)(void* context, const char* message,
                                                                  size_t size),
                                                    void* context);

/* A device besides the host. */
REWIRE_API RewireStatus rewire_link_options_add_device(RewireLinkOptions* options,
                                                       const RewireDeviceApi* device);

/* What one invocation may use at most; 0 is the default. */
typedef struct RewireLimits {
  uint32_t struct_size;
  uint32_t depth; /* active calls; 0: 16384 */
  uint64_t steps; /* instructions; 0: no limit */
  uint64_t bytes; /* of the VM's memory, results that the host still holds included; 0: no limit */
} RewireLimits;
/* For the function `__init`, which linking runs. NULL: the defaults. */
REWIRE_API RewireStatus rewire_link_options_set_init_limits(RewireLinkOptions* options,
                                                            const RewireLimits* limits);

/* What a tensor's memory holds before it is written. */
typedef int32_t RewireStorageFill;
enum {
  kRewireFillUndefined = 0, /* whatever lay there */
  kRewireFillZero = 1,      /* for untrusted programs, which could otherwise read what an earlier run left */
  kRewireFillPoison = 2     /* a pattern that shows reads of unwritten memory, for tests */
};
/* kRewireInvalidArgument: no such fill. */
REWIRE_API RewireStatus rewire_link_options_set_storage_fill(RewireLinkOptions* options,
                                                             RewireStorageFill fill);

/* --- programs --- */

/* Resolves kernels, binds parameters, runs `__init`. `options` may be NULL: the defaults. kRewireLinkFailed
 * names all missing kernels, or all missing, unknown and mismatched parameters; `__init` may fail as any
 * function. */
REWIRE_API RewireStatus rewire_program_link(const RewireExecutable* executable,
                                            const RewireLinkOptions* options, RewireProgram** out);
/* Gives the handle back; VMs of the program stay. NULL: nothing. */
REWIRE_API void rewire_program_destroy(RewireProgram* program);
/* Another program with the parameters that the sets name (the last one counts) in the place of this one's.
 * Code, kernels, constants and the other parameters are shared. Errors as rewire_program_link. */
REWIRE_API RewireStatus rewire_program_rebind(const RewireProgram* program,
                                              const RewireParameterSet* const* sets, uint32_t count,
                                              RewireProgram** out);
/* What a program was linked with, and its named constants, for programs that want them; they stay when the
 * program goes. None of them is too many for a program that does not have it. */
REWIRE_API RewireStatus rewire_parameter_set_of_program(const RewireProgram* program,
                                                        RewireParameterSet** out);

/* Names one input or one output of one function of a program, resolved once. Outputs are the leaves of the
 * result tree in pre-order. */
typedef struct RewireInput {
  uint32_t function;
  uint32_t index;
} RewireInput;
typedef struct RewireOutput {
  uint32_t function;
  uint32_t leaf;
} RewireOutput;

/* Function names: NULL or "" is the entry, which is "main" or without it the first function. kRewireNotFound,
 * with near names. */
REWIRE_API RewireStatus rewire_program_find_function(const RewireProgram* program, const char* name,
                                                     uint32_t* function);
/* An input of a function by name. */
REWIRE_API RewireStatus rewire_program_find_input(const RewireProgram* program, const char* function,
                                                  const char* name, RewireInput* input);
/* An output of a function by name. */
REWIRE_API RewireStatus rewire_program_find_output(const RewireProgram* program, const char* function,
                                                   const char* name, RewireOutput* output);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_PROGRAM_H_ */
