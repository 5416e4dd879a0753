/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/compiler/aot/function_info.h>. */
/* The table of functions that each source of vm-aot has, for hosts that do not know the program. The header
 * of a source declares the same types again, so that it needs no other file; either may come first. */
#ifndef REWIRE_COMPILER_AOT_FUNCTION_INFO_H_
#define REWIRE_COMPILER_AOT_FUNCTION_INFO_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef REWIRE_AOT_TABLE
#define REWIRE_AOT_TABLE
typedef struct RewireAotTensorInfo {
  const char* name;
  const char* dtype; /* "f32" */
  int32_t rank;
  const int64_t* dims; /* of dimensions that vary the largest size */
  uint64_t bytes;
} RewireAotTensorInfo;
typedef struct RewireAotSizeInfo {
  const char* name;
  int64_t most; /* it is from 1 to this */
} RewireAotSizeInfo;
/* A function for hosts that do not know it. `kernels` is null unless the kernels are packed functions, and
   `weights` unless they lie in memory of the host. `sizes` has size_count numbers. `output_dims` returns 0
   and the dimensions of an output, or 1 for sizes or outputs that there are not; null if size_count is 0. */
typedef struct RewireAotFunctionInfo {
  const char* name;
  uint64_t executable; /* the content hash of the executable, which states of the function name */
  uint64_t arena_bytes;
  const RewireAotTensorInfo* inputs;
  int32_t input_count;
  const RewireAotTensorInfo* outputs;
  int32_t output_count;
  const RewireAotSizeInfo* sizes;
  int32_t size_count;
  int (*output_dims)(const int64_t* sizes, int32_t output, int64_t* dims);
  int (*run)(void* kernels, void* memory, const void* weights, const int64_t* sizes,
             const void* const* inputs, void* const* outputs);
} RewireAotFunctionInfo;
#endif

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_COMPILER_AOT_FUNCTION_INFO_H_ */
