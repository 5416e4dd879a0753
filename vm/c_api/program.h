/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/program.h>. */
/* Programs: executables whose kernels are resolved and whose parameters are bound. A handle is immutable;
 * several threads and VMs may use one at once. The rules in status.h hold. */
#ifndef REWIRE_VM_C_API_PROGRAM_H_
#define REWIRE_VM_C_API_PROGRAM_H_

#include "rewire/vm/c_api/executable.h"
#include "rewire/vm/c_api/parameters.h"
#include "rewire/vm/c_api/value.h"
#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireProgram RewireProgram;
/* The options that a program is linked with. Fill it in on one thread. It may be used for many programs and
 * destroyed after linking. */
typedef struct RewireLinkOptions RewireLinkOptions;

/* Makes options with the defaults: stock kernels, serial execution, malloc, no log. */
REWIRE_API RewireStatus rewire_link_options_make(RewireLinkOptions** out);
/* Destroys the options. Programs keep what they need of them. NULL is allowed. */
REWIRE_API void rewire_link_options_destroy(RewireLinkOptions* options);

/* --- kernels: the source that was added last is asked first --- */

/* Adds a directory that rewire_link_options_add_library searches first. */
REWIRE_API RewireStatus rewire_link_options_add_library_path(RewireLinkOptions* options,
                                                             const char* directory);
/* Loads a shared library of kernels, which runs its code. A name without a slash is searched in the
 * directories above, then beside Rewire's own kernel libraries, then as dlopen does. Errors: kRewireNotFound
 * with every place that was tried, kRewireUnsupported, kRewireIo. */
REWIRE_API RewireStatus rewire_link_options_add_library(RewireLinkOptions* options, const char* path);
/* Adds a function of this process as the kernel `name`. It is called with `handle` as its first argument, on
 * many threads at once. To fail, it calls rewire_kernel_api()->set_error and returns -1.
 *
 * `deleter(handle)` is called once, on any thread, when no options and no program need the function any more.
 * If adding fails, it is called before this returns. It may be NULL. */
REWIRE_API RewireStatus rewire_link_options_add_kernel(RewireLinkOptions* options, const char* name,
                                                       RewirePackedFunction function, void* handle,
                                                       void (*deleter)(void* handle));
/* Adds a table of kernels that is linked into this process. It must outlive the programs. `description` is
 * for messages; NULL means "a table of the host's". */
REWIRE_API RewireStatus rewire_link_options_add_table(RewireLinkOptions* options,
                                                      const RewireKernelTable* table,
                                                      const char* description);
/* 1 (the default): search Rewire's stock libraries for kernels named `rewire.*`. 0: do not. */
REWIRE_API RewireStatus rewire_link_options_use_stock_kernels(RewireLinkOptions* options, int32_t use);
/* 1: run device code that the executable itself holds. It is native code, which nothing checks: do this only
 * for files whose origin you trust. 0 (the default): linking such a file is kRewireLinkFailed. */
REWIRE_API RewireStatus rewire_link_options_trust_device_code(RewireLinkOptions* options, int32_t trust);
/* The functions that kernels may call (vm/kernel/kernel.h). Static storage. */
REWIRE_API const RewireKernelApi* rewire_kernel_api(void);

/* --- parameters: found by name; if a name is given several times, the last one counts --- */

/* Adds all parameters of a set. The options keep a reference. Adding to the set later does not change
 * them. */
REWIRE_API RewireStatus rewire_link_options_add_parameters(RewireLinkOptions* options,
                                                           const RewireParameterSet* set);
/* 1: ignore parameters that the executable does not have. 0 (the default): they are an error. */
REWIRE_API RewireStatus rewire_link_options_ignore_extra_parameters(RewireLinkOptions* options,
                                                                    int32_t ignore);
/* Adds a decoder of compressed constants, besides zstd. `context` must stay as long as programs are linked
 * with these options. */
REWIRE_API RewireStatus rewire_link_options_add_codec(RewireLinkOptions* options, const RewireCodec* codec);
/* The value must be a tensor; it is shared. For tensors in the caller's memory, see
 * rewire_value_wrap_tensor. */
REWIRE_API RewireStatus rewire_link_options_add_parameter(RewireLinkOptions* options, const char* name,
                                                          const RewireValue* tensor);
/* Refers to host memory. It must outlive every program that is linked with it, and their results. */
REWIRE_API RewireStatus rewire_link_options_borrow_parameter(RewireLinkOptions* options, const char* name,
                                                             const DLTensor* tensor);
/* Takes over a DLPack tensor. Ownership passes in every case (value.h). */
REWIRE_API RewireStatus rewire_link_options_take_parameter(RewireLinkOptions* options, const char* name,
                                                           DLManagedTensor* managed);

/* --- services of the host --- */

/* The source of all memory of the program's VMs: objects, stack, storage and results. Several threads may
 * call the functions at once. They must stay until the last VM and the last result are gone. */
typedef struct RewireAllocator {
  uint32_t struct_size;
  void* context;
  /* Returns `size` bytes at a multiple of `alignment` (a power of two), or NULL if there is no memory. */
  void* (*allocate)(void* context, size_t size, size_t alignment);
  /* Frees what `allocate` returned. Size and alignment are those of the allocation. */
  void (*deallocate)(void* context, void* pointer, size_t size, size_t alignment);
} RewireAllocator;
/* Sets the allocator. The struct is copied. Both functions are required. */
REWIRE_API RewireStatus rewire_link_options_set_allocator(RewireLinkOptions* options,
                                                          const RewireAllocator* allocator);

/* A thread pool for the parallel loops of kernels. */
typedef struct RewireThreadPool {
  uint32_t struct_size;
  int32_t thread_count; /* threads that can work at once, including the caller's; at least 1 */
  void* context;
  /* Splits [begin, end) into ranges of at least `grain`, calls body(data, first, last) on each, and returns
   * when all are done. The calling thread may take part. Several threads may call it at once, also from
   * inside a body. */
  void (*parallel_for)(void* context, int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* data, int64_t begin, int64_t end), void* data);
  /* Called once, on any thread, when no program needs the pool any more. May be NULL. */
  void (*destroy)(void* context);
} RewireThreadPool;
/* Sets the thread pool. If this fails, `destroy` is not called. */
REWIRE_API RewireStatus rewire_link_options_set_thread_pool(RewireLinkOptions* options,
                                                            const RewireThreadPool* pool);
/* Uses a thread pool of Rewire with `threads` threads in all. The programs linked with these options share
 * it. 1 means serial execution. */
REWIRE_API RewireStatus rewire_link_options_set_thread_count(RewireLinkOptions* options, int32_t threads);

/* Sets the receiver of messages that are no errors. It is called on the thread that has the message.
 * `message` has `size` bytes and is valid during the call. NULL: messages are dropped. `context` must stay as
 * long as a program or VM exists. */
REWIRE_API RewireStatus rewire_link_options_set_log(RewireLinkOptions* options,
                                                    void (*write)(void* context, const char* message,
                                                                  size_t size),
                                                    void* context);

/* Adds a device in addition to the host. */
REWIRE_API RewireStatus rewire_link_options_add_device(RewireLinkOptions* options,
                                                       const RewireDeviceApi* device);

/* The limits of one invocation. 0 means the default. */
typedef struct RewireLimits {
  uint32_t struct_size;
  uint32_t depth; /* active calls; 0: 16384 */
  uint64_t steps; /* instructions; 0: no limit */
  uint64_t bytes; /* of the VM's memory, including results that the host holds; 0: no limit */
} RewireLimits;
/* Limits for the function `__init`, which linking runs. NULL means the defaults. */
REWIRE_API RewireStatus rewire_link_options_set_init_limits(RewireLinkOptions* options,
                                                            const RewireLimits* limits);

/* The limits of linking. 0 means the default (vm/limits.h has the values). The cost depends on the file
 * alone, so these limits make it safe to link files from strangers. */
typedef struct RewireLinkLimits {
  uint32_t struct_size;
  uint64_t work;   /* units, each about one instruction or record looked at, including those of `__init` */
  uint64_t bytes;  /* constants that are decompressed, copied or computed, and what `__init` holds */
  int64_t timeout; /* nanoseconds from this call on, by which programs must be linked; 0: no limit */
} RewireLinkLimits;
/* Sets the limits. Linking that exceeds one fails with kRewireStepLimit, kRewireMemoryLimit or
 * kRewireDeadlineExceeded. NULL means the defaults. Errors: kRewireInvalidArgument for a negative timeout. */
REWIRE_API RewireStatus rewire_link_options_set_limits(RewireLinkOptions* options,
                                                       const RewireLinkLimits* limits);

/* The content of a tensor's memory before it is written. */
typedef int32_t RewireStorageFill;
enum {
  kRewireFillUndefined = 0, /* whatever was there */
  kRewireFillZero = 1, /* zeroes; for untrusted programs, which could otherwise read data of an earlier run */
  kRewireFillPoison = 2 /* a pattern that makes reads of unwritten memory visible; for tests */
};
/* Errors: kRewireInvalidArgument for an unknown fill. */
REWIRE_API RewireStatus rewire_link_options_set_storage_fill(RewireLinkOptions* options,
                                                             RewireStorageFill fill);

/* 1: programs of equal weights share what `__init` computes (LinkOptions::init_sharing in vm/program.h).
 * Weights are compared by content. 0 (the default): `__init` runs for each program. In librewire_prepare. */
REWIRE_API RewireStatus rewire_link_options_share_init_results(RewireLinkOptions* options, int32_t share);

/* --- programs --- */

/* Links an executable: resolves kernels, binds parameters and runs `__init`. `options` may be NULL, which
 * means the defaults. Errors: kRewireLinkFailed names all missing kernels, or all missing, unknown and
 * mismatched parameters. `__init` may fail like any other function. */
REWIRE_API RewireStatus rewire_program_link(const RewireExecutable* executable,
                                            const RewireLinkOptions* options, RewireProgram** out);
/* Destroys the handle. VMs of the program stay valid. NULL is allowed. */
REWIRE_API void rewire_program_destroy(RewireProgram* program);
/* Makes another program that uses the parameters of the given sets in place of this program's. If several
 * sets have a name, the last one counts. Code, kernels, constants and the other parameters are shared. Errors
 * as rewire_program_link. */
REWIRE_API RewireStatus rewire_program_rebind(const RewireProgram* program,
                                              const RewireParameterSet* const* sets, uint32_t count,
                                              RewireProgram** out);
/* Returns a set of the parameters that a program was linked with and its named constants. They stay alive
 * when the program is gone. Other programs take what they need; entries that they do not know are no
 * error. */
REWIRE_API RewireStatus rewire_parameter_set_of_program(const RewireProgram* program,
                                                        RewireParameterSet** out);

/* Identifies one input or one output of one function of a program, resolved once. Outputs are the leaves of
 * the result tree, in pre-order. */
typedef struct RewireInput {
  uint32_t function;
  uint32_t index;
} RewireInput;
typedef struct RewireOutput {
  uint32_t function;
  uint32_t leaf;
} RewireOutput;

/* Finds a function by name. NULL or "" means the entry: "main", or without it the first function. Errors:
 * kRewireNotFound, with similar names. */
REWIRE_API RewireStatus rewire_program_find_function(const RewireProgram* program, const char* name,
                                                     uint32_t* function);
/* Finds an input of a function by name. */
REWIRE_API RewireStatus rewire_program_find_input(const RewireProgram* program, const char* function,
                                                  const char* name, RewireInput* input);
/* Finds an output of a function by name. */
REWIRE_API RewireStatus rewire_program_find_output(const RewireProgram* program, const char* function,
                                                   const char* name, RewireOutput* output);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_PROGRAM_H_ */
