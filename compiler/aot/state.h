/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/compiler/aot/state.h>. */
/* State of a program that vm-aot made: its inputs, in the bytes of VirtualMachine::TryState (docs/state.md).
 * What one of the two saves, the other one loads.
 *
 * A function is a row of the program's table. All memory is the caller's. */
#ifndef REWIRE_COMPILER_AOT_STATE_H_
#define REWIRE_COMPILER_AOT_STATE_H_

#include "rewire/compiler/aot/function_info.h"
#include "rewire/executable_format/state/state_format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The memory of an input, which the caller owns. */
typedef struct RewireAotStateInput {
  /* Its elements: RewireAotTensorInfo::bytes bytes, or those of `dims`. Null: the input is not saved, and a
   * tensor for it is passed over. */
  void* data;
  /* The dimensions of an input whose size varies, as many as its rank. They are read when it is saved, and
   * written when it is loaded. Null: those of the table, which are the largest ones. */
  int64_t* dims;
  int32_t is_loaded; /* set by RewireAotLoadState: 1 if the state had the input, else 0 */
} RewireAotStateInput;

/* Whether an input may have these dimensions; *bytes is then what its elements take. */
static inline int RewireAotStateForm(const RewireAotTensorInfo* info, const int64_t* dims, uint64_t* bytes) {
  int32_t i;
  *bytes = info->bytes;
  for (i = 0; i < info->rank; ++i) {
    if (dims[i] < 0 || dims[i] > info->dims[i]) return 0;
    if (*bytes != 0) *bytes = *bytes / (uint64_t)info->dims[i] * (uint64_t)dims[i];
  }
  return 1;
}

/* Writes the state of a function, whose inputs are `inputs` in their order, to `room` bytes of memory. *size
 * is what it takes; with `room` 0 that is all that is told, and `bytes` may be null. Errors:
 * kRewireStateNoRoom; kRewireStateOtherForm for dimensions beyond the table's. */
static inline RewireStateError RewireAotSaveState(const RewireAotFunctionInfo* function,
                                                  const RewireAotStateInput* inputs, void* bytes,
                                                  uint64_t room, uint64_t* size) {
  RewireStateWriter writer;
  int32_t i;
  RewireStateBegin(&writer, bytes, room, function->executable, function->name);
  for (i = 0; i < function->input_count; ++i) {
    const RewireAotTensorInfo* const info = &function->inputs[i];
    const int64_t* const dims = inputs[i].dims == NULL ? info->dims : inputs[i].dims;
    uint64_t data_bytes;
    if (inputs[i].data == NULL) continue;
    if (!RewireAotStateForm(info, dims, &data_bytes)) return kRewireStateOtherForm;
    RewireStateAdd(&writer, info->name, info->dtype, (uint32_t)info->rank, dims, inputs[i].data, data_bytes);
  }
  return RewireStateEnd(&writer, size);
}

/* Whether a tensor of a state goes into an input. */
static inline int RewireAotStateFits(const RewireStateTensor* tensor, const RewireAotTensorInfo* info,
                                     const RewireAotStateInput* input) {
  int64_t dims[kRewireStateMaxRank];
  uint64_t bytes;
  int32_t axis;
  if (tensor->rank != (uint32_t)info->rank || strcmp(tensor->dtype, info->dtype) != 0) return 0;
  for (axis = 0; axis < info->rank; ++axis) {
    dims[axis] = RewireStateDim(tensor, (uint32_t)axis);
    if (input->dims == NULL && dims[axis] != info->dims[axis]) return 0;
  }
  return RewireAotStateForm(info, dims, &bytes) && bytes == tensor->data_bytes;
}

/* Goes through the tensors of a state that is open, and copies those whose inputs have memory if `copy` is
 * set. */
static inline RewireStateError RewireAotWalkState(const RewireAotFunctionInfo* function,
                                                  RewireStateReader reader, RewireAotStateInput* inputs,
                                                  int copy) {
  RewireStateTensor tensor;
  int32_t i = 0;
  while (RewireStateNext(&reader, &tensor) > 0) {
    while (i < function->input_count &&
           !RewireStateIs(tensor.name, tensor.name_bytes, function->inputs[i].name))
      ++i;
    if (i == function->input_count) return kRewireStateUnknownInput;
    if (inputs[i].data != NULL) {
      if (!RewireAotStateFits(&tensor, &function->inputs[i], &inputs[i])) return kRewireStateOtherForm;
      if (copy) {
        int32_t axis;
        for (axis = 0; inputs[i].dims != NULL && axis < function->inputs[i].rank; ++axis) {
          inputs[i].dims[axis] = RewireStateDim(&tensor, (uint32_t)axis);
        }
        if (tensor.data_bytes != 0) memcpy(inputs[i].data, tensor.data, (size_t)tensor.data_bytes);
        inputs[i].is_loaded = 1;
      }
    }
    ++i;
  }
  return kRewireStateOk;
}

/* Copies the tensors of a state into the memory of `inputs`, which are the function's in their order. Any
 * error leaves all memory as it was. The bytes may come from anywhere. */
static inline RewireStateError RewireAotLoadState(const RewireAotFunctionInfo* function, const void* bytes,
                                                  uint64_t size, RewireAotStateInput* inputs) {
  RewireStateReader reader;
  RewireStateError error = RewireStateOpen(&reader, bytes, size);
  int32_t i;
  for (i = 0; i < function->input_count; ++i) inputs[i].is_loaded = 0;
  if (error != kRewireStateOk) return error;
  if (reader.program != function->executable) return kRewireStateOtherProgram;
  if (!RewireStateIs(reader.function, reader.function_bytes, function->name))
    return kRewireStateOtherFunction;
  error = RewireAotWalkState(function, reader, inputs, 0);
  return error == kRewireStateOk ? RewireAotWalkState(function, reader, inputs, 1) : error;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_COMPILER_AOT_STATE_H_ */
