/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/compiler/c_api.h>. */
/* The compiler's C API, in librewire_compiler: an ONNX model in, an executable out. The rules in
 * vm/c_api/status.h hold. Any number of models may be compiled at once, each call on one thread.
 *
 *   RewireExecutable* executable = NULL;
 *   if (rewire_compile("model.onnx", NULL, NULL, &executable) == kRewireOk) {
 *     rewire_executable_write(executable, "model.rwx");
 *   } */
#ifndef REWIRE_COMPILER_C_API_H_
#define REWIRE_COMPILER_C_API_H_

#include "rewire/vm/c_api/executable.h"
#include "rewire/vm/c_api/memory.h"
#include "rewire/vm/c_api/parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A node of the model that cannot be compiled. The strings live during the call that passes it. */
typedef struct RewireUnsupportedNode {
  uint32_t struct_size;
  const char* node; /* its name, or its first output */
  const char* op_type;
  const char* domain; /* "" for ONNX's own operators */
  int64_t opset;      /* the version of the domain's operators that the model asks for */
  const char* reason;
} RewireUnsupportedNode;

/* Samples of an input for kRewirePrecisionInt8 or Bf16: a tensor in host memory. With one axis more than the
 * input, its first axis counts samples. */
typedef struct RewireCalibrationArray {
  const char* input; /* its name */
  const DLTensor* samples;
} RewireCalibrationArray;

/* An array for each input. All that have an axis of samples must have the same number of them. Any other
 * array is part of every sample. */
typedef struct RewireCalibrationData {
  const RewireCalibrationArray* arrays;
  uint32_t array_count;
} RewireCalibrationData;

/* The numbers that convolutions and products with constant weights compute with. */
enum {
  kRewirePrecisionModel = 0, /* those of the model */
  kRewirePrecisionInt8 = 1,  /* 8-bit integers in place of f32: the compiler quantizes the model by samples */
  kRewirePrecisionBf16 = 2   /* bf16 in place of f32, with sums in f32; samples only measure what that does */
};

/* How ranges follow from samples. compiler/compiler.h explains them. */
enum { kRewireCalibrationLeastSquares = 0, kRewireCalibrationMinMax = 1, kRewireCalibrationEntropy = 2 };

/* Whether small operators that do not depend on each other run at once, as rewire::Parallel explains it. */
enum { kRewireParallelAuto = 0, kRewireParallelOff = 1 };

/* The CPU for which kRewirePrecisionBf16 chooses how convolutions are computed, as rewire::Cpu explains it.
 */
enum { kRewireCpuNative = 0, kRewireCpuVectors = 1, kRewireCpuTiles = 2 };

/* The choice of what ranks split, as rewire::ShardGoal explains it. */
enum { kRewireShardForTime = 0, kRewireShardForMemory = 1 };

/* A product of the float model, as rewire::ProductPrecision explains it. The strings live during the call
 * that passes it. */
typedef struct RewireProductPrecision {
  uint32_t struct_size;
  int32_t quantized;
  const char* node;   /* operator and name: "Conv 'conv1'" */
  const char* reason; /* why it is f32; "" if it is quantized */
  double noise;       /* NaN if it was not measured */
} RewireProductPrecision;

/* How far an output moved from the float model's, as rewire::OutputMovement explains it. The string lives
 * during the call that passes it. */
typedef struct RewireOutputMovement {
  uint32_t struct_size;
  const char* output;
  double max_abs;
  double relative;
} RewireOutputMovement;

/* A layer with constant weights, as rewire::ShardedLayer explains it. The strings live during the call that
 * passes it. */
typedef struct RewireShardedLayer {
  uint32_t struct_size;
  const char* node;   /* operator and name: "MatMul 'up'" */
  const char* split;  /* "columns", "rows", "heads", "groups"; "" if each rank has all of it */
  const char* reason; /* why it is not split; else "" */
  uint64_t weight_bytes;
  uint64_t rank_bytes; /* of a rank's part */
} RewireShardedLayer;

/* Calls of a kernel that stay on the CPU. The strings live during the call that passes them. */
typedef struct RewireHostCalls {
  uint32_t struct_size;
  const char* kernel;
  const char* reason;
  uint64_t calls;
} RewireHostCalls;

/* An initializer that the model's graph lists among its inputs, too, as that input is declared. The strings
 * and the sizes live during the call that passes them. */
typedef struct RewireOverridableInitializer {
  uint32_t struct_size;
  int32_t rank; /* -1: the input declares no shape */
  const char* name;
  const char* element_type; /* "f32", or "string" */
  const int64_t* dims;      /* -1: open */
} RewireOverridableInitializer;

/* A file of external data in memory, by the location that the model's tensors name. */
typedef struct RewireExternalFile {
  const char* location;
  const void* data;
  size_t size;
} RewireExternalFile;

/* Everything that is 0 or NULL has its default. Arrays, tensors and strings are borrowed: they must stay as
 * they are until the call returns, and are not used afterwards. */
typedef struct RewireCompileOptions {
  uint32_t struct_size;
  uint32_t dim_count;
  const RewireMaxDim* dims; /* symbolic dimensions to fix: {"N", 4} */
  /* the largest sizes of dimensions that stay symbolic; the executable refuses larger inputs */
  const RewireMaxDim* max_dims;
  uint32_t max_dim_count;
  uint32_t disabled_pass_count;
  const char* const* disabled_passes; /* names of rewire_compiler_pass */
  uint64_t max_work;                  /* units of work of lowering; beyond it: kRewireStepLimit */
  uint64_t max_fold_bytes; /* bytes of constants to compute now, in addition to four times the weights */
  int64_t fold_time;       /* nanoseconds for computing constants */
  void* context;           /* the first argument of the functions below, which the call calls itself */
  /* told when work begins: "reading", the name of a pass, and so on */
  void (*progress)(void* context, const char* what);
  /* told of each node that cannot be compiled, before the call fails with kRewireUnsupported */
  void (*unsupported)(void* context, const RewireUnsupportedNode* node);
  /* folders that links in the model's folder may lead to, such as a hub's cache */
  const char* const* external_folders;
  uint32_t external_folder_count;
  uint32_t precision;                       /* kRewirePrecisionModel and so on */
  const RewireCalibrationData* calibration; /* one after the other; sizes may differ between them */
  uint32_t calibration_count;
  uint32_t calibration_method; /* kRewireCalibrationLeastSquares and so on */
  double max_error; /* most that an output moves on the samples, as `relative`; 0: 0.05; infinity: no limit */
  const char* const* keep_float; /* names of nodes that stay float in any case */
  uint32_t keep_float_count;
  /* told of each product and of each output of f32, after kRewirePrecisionInt8 or Bf16 has succeeded */
  void (*product)(void* context, const RewireProductPrecision* product);
  void (*moved)(void* context, const RewireOutputMovement* output);
  /* the device that nodes run on where it has kernels for them: "opencl", "cuda:1"; NULL: the CPU */
  const char* device;
  int64_t least_device_work; /* elements that nodes that hang together must compute there; 0: 100,000 */
  /* told of each kernel that stays on the CPU, after compiling for a device */
  void (*stays_on_host)(void* context, const RewireHostCalls* calls);
  /* told why `moved` is not, after kRewirePrecisionBf16 without samples: the model does not run with random
   * inputs */
  void (*unmeasured)(void* context, const char* reason);
  uint32_t parallel; /* kRewireParallelAuto and so on */
  uint32_t cpu;      /* kRewireCpuNative and so on */
  /* 1: the file's code and tables are never compressed, for libraries without zstd */
  uint32_t uncompressed;
  /* 1: leaves out each pass that may change more than the order of sums, as CompileOptions::strict explains
   */
  uint32_t strict;
  /* told of each constant of which the pass tiny-weights has made `count` subnormal weights 0, and the node
   * that multiplies by them */
  void (*zeroed)(void* context, const char* constant, const char* node, uint64_t count);
  /* 1: checks the program after each pass, so that a fault of the compiler is kRewireInternal and names the
   * pass, as CompileOptions::check_passes explains it. Builds with assertions do so anyway. */
  uint32_t check_passes;
  uint32_t parameter_count;
  /* names of constants of the model that become parameters of the executable, as CompileOptions::parameters
   * explains them */
  const char* const* parameters;
  /* Receives the executable's parameters with the model's own elements, which the caller destroys. NULL: not
   * made. */
  RewireParameterSet** own_parameters;
  uint32_t all_parameters; /* 1: all weights do, as CompileOptions::all_parameters says */
  /* The JSON of schemas of operators that the caller's kernels compute (docs/own-operators.md). NULL: none.
   */
  const char* operators;
  /* A folder in which executables are kept, as CompileOptions::cache explains it. NULL: none. */
  const char* cache;
  /* told why the cache is not used, or why the executable is not kept there */
  void (*cache_problem)(void* context, const char* reason);
  /* Elements of initializers, as CompileOptions::initializers explains them: the executable may use their
   * memory in place, and keeps it. The set itself may be destroyed after the call. NULL: none. */
  const RewireParameterSet* initializers;
  /* Files of external data in memory, which go before those in folders. What is read of them is copied. */
  const RewireExternalFile* external_files;
  uint32_t external_file_count;
  uint32_t overridden_count;
  /* names of initializers that each run gives, as CompileOptions::overridden explains them */
  const char* const* overridden;
  /* told of each initializer of the model that `overridden` may name, but for those that it names */
  void (*overridable)(void* context, const RewireOverridableInitializer* initializer);
  /* The program of one of several ranks, as the fields of CompileOptions of these names explain them. 0
   * shards and 0 stages are 1. */
  int64_t shards;
  int64_t stages;
  int64_t rank;
  uint32_t shard_goal; /* kRewireShardForTime and so on */
  /* told of each layer with constant weights, for several shards */
  void (*sharded)(void* context, const RewireShardedLayer* layer);
} RewireCompileOptions;

/* The report of compiling a model. compiler/compiler.h explains the figures. */
typedef struct RewireCompileReport {
  uint32_t struct_size;
  int32_t memory_is_bounded; /* 1: memory_bytes holds */
  uint64_t model_nodes;
  uint64_t nodes;
  uint64_t kernel_calls;
  uint64_t kernels;
  uint64_t constants;
  uint64_t constant_bytes;
  uint64_t arena_bytes;
  uint64_t separate_bytes;
  uint64_t memory_bytes;       /* what one run takes at most beside weights and outputs */
  int64_t time;                /* nanoseconds of the whole call */
  uint64_t products;           /* with kRewirePrecisionInt8 and Bf16: of the float model */
  uint64_t quantized;          /* how many of them compute with that precision */
  uint64_t device_calls;       /* for a device: kernel calls that run there */
  uint64_t device_arena_bytes; /* as arena_bytes and separate_bytes, of tensors on the device */
  uint64_t device_separate_bytes;
  uint64_t parameters; /* tensors that programs are linked with */
  uint64_t parameter_bytes;
  /* 1: the executable is from the cache. Then only figures of the executable itself are here: kernels,
   * constants and memory. */
  uint64_t from_cache;
} RewireCompileReport;

/* Compiles the model of a file. External data is read only from inside the file's folder, and through links
 * from external_folders and the folder that the file itself lies in after links are followed. `options` and
 * `report` may be NULL.
 *
 * Errors: kRewireNotFound and kRewireIo from reading; kRewireInvalidFile for a file that is no ONNX model;
 * kRewireInvalidArgument for a wrong dimension, pass, parameter, initializer or calibration. Also
 * kRewireStepLimit beyond max_work, and kRewireUnsupported if nodes cannot be compiled. */
REWIRE_API RewireStatus rewire_compile(const char* path, const RewireCompileOptions* options,
                                       RewireCompileReport* report, RewireExecutable** out);
/* The same for `size` bytes of memory, which are not used after the return. `folder` may hold external data;
 * NULL refuses external data. `name` names the model in messages; NULL: "model". */
REWIRE_API RewireStatus rewire_compile_memory(const void* data, size_t size, const char* folder,
                                              const char* name, const RewireCompileOptions* options,
                                              RewireCompileReport* report, RewireExecutable** out);
/* Returns the name of a pass that can be disabled, in the order of the passes; NULL behind the last one.
 * Static storage. */
REWIRE_API const char* rewire_compiler_pass(uint32_t index);
/* Writes an executable as a .rwx file, which is complete or unchanged. Errors: kRewireIo. */
REWIRE_API RewireStatus rewire_executable_write(const RewireExecutable* executable, const char* path);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_COMPILER_C_API_H_ */
