/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as TVM up to 0.20 exports it for the graph executor, with its kernel, and without its parameters
 * (remove_params): sum = x + w. */
#include <dlpack/dlpack.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define JSON                                                                           \
  "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"                  \
  "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"                               \
  "{\"op\": \"tvm_op\", \"name\": \"sum\", \"attrs\": {\"func_name\": \"fused_add\"}," \
  "\"inputs\": [[0, 0, 0], [1, 0, 0]]}],"                                              \
  "\"arg_nodes\": [0, 1], \"heads\": [[2, 0, 0]], \"node_row_ptr\": [0, 1, 2, 3],"     \
  "\"attrs\": {\"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\"]],"   \
  "\"storage_id\": [\"list_int\", [0, 1, 2]], \"shape\": [\"list_shape\", [[2], [2], [2]]]}}"

EXPORT void* __tvm_module_ctx = 0;

typedef union {
  int64_t v_int64;
  double v_float64;
  DLTensor* v_handle;
} Value;

EXPORT int fused_add(Value* args, int* codes, int num_args, Value* result, int* result_code, void* resource) {
  (void)codes, (void)result, (void)result_code, (void)resource;
  if (num_args != 3) return -1;
  const float *x = args[0].v_handle->data, *w = args[1].v_handle->data;
  float* sum = args[2].v_handle->data;
  for (int i = 0; i < 2; ++i) sum[i] = x[i] + w[i];
  return 0;
}

#define TEXT(name)       \
  uint64_t name##_bytes; \
  char name[sizeof(name##_TEXT) - 1]
#define kind_TEXT "GraphExecutorFactory"
#define json_TEXT JSON
#define model_TEXT "default"
#define library_TEXT "_lib"
#define OF(name) sizeof(name##_TEXT) - 1, name##_TEXT

EXPORT const struct __attribute__((packed)) {
  uint64_t bytes, entries;
  TEXT(kind);
  TEXT(json);
  uint64_t parameters, names;
  TEXT(model);
  TEXT(library);
} __tvm_dev_mblob = {
    sizeof(__tvm_dev_mblob) - sizeof(uint64_t), 2, OF(kind), OF(json), 0, 0, OF(model), OF(library)};
