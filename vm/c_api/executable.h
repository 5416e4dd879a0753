/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: opening and inspecting them. Immutable; any number of threads may use one handle at once. The
 * rules in status.h hold. */
#ifndef REWIRE_VM_C_API_EXECUTABLE_H_
#define REWIRE_VM_C_API_EXECUTABLE_H_

#include <dlpack/dlpack.h>

#include "vm/c_api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file that has been read and verified. Nothing of it has run. */
typedef struct RewireExecutable RewireExecutable;

/* What an executable may hold at most; 0 is the default (executable_format/limits.h). For untrusted files. */
typedef struct RewireFormatLimits {
  uint32_t struct_size;
  uint32_t functions;
  uint32_t registers; /* per function */
  uint32_t constants;
  uint32_t kernels;
  uint32_t code_words; /* over all functions */
  uint64_t verifier_state;
  uint64_t verifier_steps;
} RewireFormatLimits;

typedef struct RewireOpenOptions {
  uint32_t struct_size;
  int32_t verify_data; /* check every constant's checksum now; otherwise when it is first used */
  int32_t copy;        /* read into memory instead of mapping the file or using the caller's memory */
  const RewireFormatLimits* limits; /* NULL: the defaults */
} RewireOpenOptions;

/* Opens a file. `options` may be NULL. kRewireNotFound, kRewireIo, kRewireInvalidFile, kRewireUnsupported,
 * kRewireVerificationFailed. */
REWIRE_API RewireStatus rewire_executable_open(const char* path, const RewireOpenOptions* options,
                                               RewireExecutable** out);
/* One model of a bundle (executable_format/bundle.h), in librewire_prepare; NULL or "" is its only one.
 * kRewireNotFound also for a name that the bundle does not have. */
REWIRE_API RewireStatus rewire_executable_open_bundled(const char* path, const char* model,
                                                       const RewireOpenOptions* options,
                                                       RewireExecutable** out);
/* The same as rewire_executable_open from `size` bytes of memory, which must not change while they are in
 * use. `release(context)` is called exactly once, on any thread, when they no longer are; on failure before
 * this returns. NULL: the memory lives longer than the executable, its programs and all their results. Memory
 * that is not 64-byte aligned is copied, as with options->copy; it is then released before this returns. */
REWIRE_API RewireStatus rewire_executable_open_memory(const void* data, size_t size,
                                                      void (*release)(void* context), void* context,
                                                      const RewireOpenOptions* options,
                                                      RewireExecutable** out);
/* Gives the handle back; programs of it stay. NULL: nothing. */
REWIRE_API void rewire_executable_destroy(RewireExecutable* executable);

typedef struct RewireExecutableInfo {
  uint32_t struct_size;
  uint32_t function_count;
  uint32_t parameter_count;
  uint32_t kernel_count;
  uint32_t device_count;
  uint32_t symbol_count;
} RewireExecutableInfo;

/* Counts what the executable has. */
REWIRE_API RewireStatus rewire_executable_info(const RewireExecutable* executable,
                                               RewireExecutableInfo* info);

/* What follows returns strings and dimensions that live as long as the executable or a program of it. */

typedef struct RewireFunctionInfo {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;      /* leaves of the result tree */
  uint32_t result_node_count; /* nodes of the result tree */
  const char* name;
} RewireFunctionInfo;

/* A function by its number, from 0 to function_count. kRewireInvalidArgument: there is none. */
REWIRE_API RewireStatus rewire_executable_function(const RewireExecutable* executable, uint32_t function,
                                                   RewireFunctionInfo* info);
/* kRewireNotFound, with near names. */
REWIRE_API RewireStatus rewire_executable_find_function(const RewireExecutable* executable, const char* name,
                                                        uint32_t* function);

typedef int32_t RewireTypeKind;
enum {
  kRewireTypeTensor = 0,
  kRewireTypeAdt = 1,
  kRewireTypeClosure = 2,
  kRewireTypeStorage = 3,
  kRewireTypeInteger = 4,
  kRewireTypeValue = 5 /* any of them */
};

/* Special dimensions of a type. A dimension d <= -2 is the symbol number -2 - d; within one call, every
 * dimension with the same symbol has the same size. */
#define REWIRE_UNKNOWN_DIM ((int64_t)-1)
#define REWIRE_ANY_DEVICE ((uint32_t)0xFFFFFFFFu)

/* One node of a type. A type is its nodes in pre-order: a tensor is one node, an ADT is its node followed by
 * the subtrees of its fields. */
typedef struct RewireTypeNode {
  uint32_t struct_size;
  RewireTypeKind kind;
  DLDataType dtype;     /* tensors; all zero: unknown */
  int32_t rank;         /* tensors; -1: unknown */
  const int64_t* dims;  /* tensors of known rank: `rank` sizes, in elements */
  uint32_t device;      /* tensors; entry of the device table, or REWIRE_ANY_DEVICE */
  uint32_t tag;         /* ADTs */
  uint32_t field_count; /* ADTs */
} RewireTypeNode;

/* An input's name, and how many nodes its type has. */
REWIRE_API RewireStatus rewire_executable_input(const RewireExecutable* executable, uint32_t function,
                                                uint32_t index, const char** name, uint32_t* node_count);
/* One node of an input's type, from 0 to node_count. */
REWIRE_API RewireStatus rewire_executable_input_node(const RewireExecutable* executable, uint32_t function,
                                                     uint32_t index, uint32_t node, RewireTypeNode* type);
/* A node of a function's result. */
REWIRE_API RewireStatus rewire_executable_result_node(const RewireExecutable* executable, uint32_t function,
                                                      uint32_t node, RewireTypeNode* type);
/* An output: the name of a leaf of the result, and its type, which is one node. */
REWIRE_API RewireStatus rewire_executable_output(const RewireExecutable* executable, uint32_t function,
                                                 uint32_t leaf, const char** name, RewireTypeNode* type);
/* A parameter: a tensor that linking has to be given. Numbered from 0 to parameter_count. */
REWIRE_API RewireStatus rewire_executable_parameter(const RewireExecutable* executable, uint32_t index,
                                                    const char** name, RewireTypeNode* type);
/* A kernel that linking has to find. `debug_name`, "" when it has none, is what errors and profiles call it;
 * it may be NULL here. */
REWIRE_API RewireStatus rewire_executable_kernel(const RewireExecutable* executable, uint32_t index,
                                                 const char** name, const char** debug_name);
/* An entry of the device table. `memory_scope` may be NULL; "" is the device's ordinary memory. */
REWIRE_API RewireStatus rewire_executable_device(const RewireExecutable* executable, uint32_t index,
                                                 DLDevice* device, const char** memory_scope);
/* The name of a symbolic dimension. */
REWIRE_API RewireStatus rewire_executable_symbol(const RewireExecutable* executable, uint32_t index,
                                                 const char** name);

/* Texts are written into the caller's `buffer` of `capacity` bytes, cut to fit and always NUL-terminated when
 * capacity > 0. *length, which may be NULL, gets the whole text's length without NUL, so that a call with
 * (NULL, 0) asks for it. */

/* "main(x: f32[N, 4]) -> (y: f32[N])" */
REWIRE_API RewireStatus rewire_executable_signature_text(const RewireExecutable* executable,
                                                         uint32_t function, char* buffer, size_t capacity,
                                                         size_t* length);
/* The instruction at word `pc` of a function's code, as text assembly: what an observer prints. */
REWIRE_API RewireStatus rewire_executable_instruction_text(const RewireExecutable* executable,
                                                           uint32_t function, uint32_t pc, char* buffer,
                                                           size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_EXECUTABLE_H_ */
