/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/executable.h>. */
/* Executables: opening and inspecting them. A handle is immutable, and several threads may use one at once.
 * The rules in status.h hold. */
#ifndef REWIRE_VM_C_API_EXECUTABLE_H_
#define REWIRE_VM_C_API_EXECUTABLE_H_

#include <dlpack/dlpack.h>

#include "rewire/vm/c_api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file that has been read and verified. None of its code has run. */
typedef struct RewireExecutable RewireExecutable;

/* The largest executable that is accepted. 0 means the default (executable_format/limits.h). Hosts may lower
 * the limits for untrusted files. */
typedef struct RewireFormatLimits {
  uint32_t struct_size;
  uint32_t functions;
  uint32_t registers; /* per function */
  uint32_t constants;
  uint32_t kernels;
  uint32_t code_words; /* over all functions */
  uint64_t verifier_state;
  uint64_t verifier_steps;
  int64_t timeout; /* nanoseconds for verifying, counted from the call that opens; 0: no limit */
} RewireFormatLimits;

typedef struct RewireOpenOptions {
  uint32_t struct_size;
  int32_t verify_data; /* 1: check every constant's checksum now; 0: when it is first used */
  int32_t copy; /* 1: read into private memory instead of using the mapped file or the caller's memory */
  const RewireFormatLimits* limits; /* NULL: the defaults */
} RewireOpenOptions;

/* Opens a file. `options` may be NULL. Errors: kRewireNotFound, kRewireIo, kRewireInvalidFile,
 * kRewireUnsupported, kRewireVerificationFailed. */
REWIRE_API RewireStatus rewire_executable_open(const char* path, const RewireOpenOptions* options,
                                               RewireExecutable** out);
/* Opens one model of a bundle (executable_format/bundle.h). In librewire_prepare. `model` NULL or "" means
 * the bundle's only model. Errors: also kRewireNotFound for a name that the bundle does not have. */
REWIRE_API RewireStatus rewire_executable_open_bundled(const char* path, const char* model,
                                                       const RewireOpenOptions* options,
                                                       RewireExecutable** out);
/* The same as rewire_executable_open, from `size` bytes of memory. The bytes must not change while they are
 * in use.
 *
 * `release(context)` is called exactly once, on any thread, when the memory is no longer in use. If opening
 * fails, it is called before this function returns. `release` may be NULL: the memory must then outlive the
 * executable, its programs and all their results. Memory that is not 64-byte aligned is copied, as with
 * options->copy, and released before this returns. */
REWIRE_API RewireStatus rewire_executable_open_memory(const void* data, size_t size,
                                                      void (*release)(void* context), void* context,
                                                      const RewireOpenOptions* options,
                                                      RewireExecutable** out);
/* The same executable with the names that vm-strip took, from the map that it wrote to the file `map_path`.
 * In librewire_prepare. Errors, traces and profiles of its programs have these names. The constants are
 * shared. Errors: kRewireNotFound, kRewireIo; kRewireInvalidArgument if the file is no map, or the map of
 * another executable; kRewireUnsupported for a map of another version. */
REWIRE_API RewireStatus rewire_executable_restore_names(const RewireExecutable* executable,
                                                        const char* map_path, RewireExecutable** out);

/* Destroys the handle. Programs of the executable stay valid. NULL is allowed. */
REWIRE_API void rewire_executable_destroy(RewireExecutable* executable);

typedef struct RewireExecutableInfo {
  uint32_t struct_size;
  uint32_t function_count;
  uint32_t parameter_count;
  uint32_t kernel_count;
  uint32_t device_count;
  uint32_t symbol_count;
} RewireExecutableInfo;

/* Counts the parts of the executable. */
REWIRE_API RewireStatus rewire_executable_info(const RewireExecutable* executable,
                                               RewireExecutableInfo* info);

/* The functions below return strings and dimensions that live as long as the executable or a program of
 * it. */

typedef struct RewireFunctionInfo {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;      /* leaves of the result tree */
  uint32_t result_node_count; /* nodes of the result tree */
  const char* name;
} RewireFunctionInfo;

/* Describes a function by its index, below function_count. Errors: kRewireInvalidArgument if there is
 * none. */
REWIRE_API RewireStatus rewire_executable_function(const RewireExecutable* executable, uint32_t function,
                                                   RewireFunctionInfo* info);
/* Errors: kRewireNotFound, with similar names. */
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

/* Special dimensions of a type. A dimension d <= -2 is the symbol with the number -2 - d. Within one call,
 * all dimensions with the same symbol have the same size. */
#define REWIRE_UNKNOWN_DIM ((int64_t)-1)
#define REWIRE_ANY_DEVICE ((uint32_t)0xFFFFFFFFu)

/* One node of a type. A type is a list of nodes in pre-order. A tensor is one node. An ADT (tagged tuple) is
 * one node, followed by the subtrees of its fields. */
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

/* Returns an input's name and the number of nodes of its type. */
REWIRE_API RewireStatus rewire_executable_input(const RewireExecutable* executable, uint32_t function,
                                                uint32_t index, const char** name, uint32_t* node_count);
/* Returns one node of an input's type; `node` is below node_count. */
REWIRE_API RewireStatus rewire_executable_input_node(const RewireExecutable* executable, uint32_t function,
                                                     uint32_t index, uint32_t node, RewireTypeNode* type);
/* Returns one node of a function's result. */
REWIRE_API RewireStatus rewire_executable_result_node(const RewireExecutable* executable, uint32_t function,
                                                      uint32_t node, RewireTypeNode* type);
/* Returns an output: the name of a leaf of the result, and its type, which is a single node. */
REWIRE_API RewireStatus rewire_executable_output(const RewireExecutable* executable, uint32_t function,
                                                 uint32_t leaf, const char** name, RewireTypeNode* type);
/* Returns a parameter: a tensor that must be given when the executable is linked. `index` is below
 * parameter_count. */
REWIRE_API RewireStatus rewire_executable_parameter(const RewireExecutable* executable, uint32_t index,
                                                    const char** name, RewireTypeNode* type);
/* Returns a kernel that linking must find. `debug_name` may be NULL; it receives the name that errors and
 * profiles use, or "". */
REWIRE_API RewireStatus rewire_executable_kernel(const RewireExecutable* executable, uint32_t index,
                                                 const char** name, const char** debug_name);
/* Returns an entry of the device table. `memory_scope` may be NULL; it receives "" for the device's ordinary
 * memory. */
REWIRE_API RewireStatus rewire_executable_device(const RewireExecutable* executable, uint32_t index,
                                                 DLDevice* device, const char** memory_scope);
/* Returns the name of a symbolic dimension. */
REWIRE_API RewireStatus rewire_executable_symbol(const RewireExecutable* executable, uint32_t index,
                                                 const char** name);

/* Functions that return texts write them into the caller's `buffer` of `capacity` bytes. The text is cut to
 * fit and always ends with NUL if capacity > 0. *length, which may be NULL, receives the length of the whole
 * text without NUL. So a call with (NULL, 0) asks for the length. */

/* "main(x: f32[N, 4]) -> (y: f32[N])" */
REWIRE_API RewireStatus rewire_executable_signature_text(const RewireExecutable* executable,
                                                         uint32_t function, char* buffer, size_t capacity,
                                                         size_t* length);
/* The instruction at word `pc` of a function's code, as text assembly. Observers can use it to print what
 * runs. */
REWIRE_API RewireStatus rewire_executable_instruction_text(const RewireExecutable* executable,
                                                           uint32_t function, uint32_t pc, char* buffer,
                                                           size_t capacity, size_t* length);

/* The metadata of the ONNX model that was compiled, in librewire_prepare. Texts are UTF-8. All is
 * empty or 0 for an executable that was made in another way, or stripped. */
typedef struct RewireModelInfo {
  uint32_t struct_size;
  uint32_t property_count;
  int64_t version; /* of the model */
} RewireModelInfo;

typedef int32_t RewireModelText;
enum {
  kRewireModelProducer = 0,
  kRewireModelProducerVersion = 1,
  kRewireModelDomain = 2,
  kRewireModelDescription = 3,
  kRewireModelGraph = 4, /* the graph's name */
  kRewireModelGraphDescription = 5
};

/* Returns the model's version, and how many properties it has (ONNX's metadata_props). */
REWIRE_API RewireStatus rewire_executable_model(const RewireExecutable* executable, RewireModelInfo* info);
/* Returns a text of the model. Errors: kRewireInvalidArgument if `text` is none of the numbers above. */
REWIRE_API RewireStatus rewire_executable_model_text(const RewireExecutable* executable, RewireModelText text,
                                                     char* buffer, size_t capacity, size_t* length);
/* Returns the key or the value of a property; `index` is below property_count. */
REWIRE_API RewireStatus rewire_executable_model_property_key(const RewireExecutable* executable,
                                                             uint32_t index, char* buffer, size_t capacity,
                                                             size_t* length);
REWIRE_API RewireStatus rewire_executable_model_property_value(const RewireExecutable* executable,
                                                               uint32_t index, char* buffer, size_t capacity,
                                                               size_t* length);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_EXECUTABLE_H_ */
