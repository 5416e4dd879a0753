/* SPDX-License-Identifier: Apache-2.0 */
/* Values: what functions take and return. A value is a tensor, an integer, an ADT (a tagged tuple of values)
 * or a closure. Immutable but for the elements of tensors. A handle is one counted reference; handles may be
 * used and destroyed on any thread, each by one thread at a time, and outlive the VM and the program that
 * made the value. The rules in status.h hold.
 *
 * Tensors are described by DLPack's DLTensor: shape and strides count elements, strides NULL is row-major
 * without gaps, the first element is at data + byte_offset. Ranks go up to 32. */
#ifndef REWIRE_VM_C_API_VALUE_H_
#define REWIRE_VM_C_API_VALUE_H_

#include "vm/c_api/status.h"
#include "vm/dlpack_versioned.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireValue RewireValue;

typedef int32_t RewireValueKind;
enum {
  kRewireValueTensor = 1,
  kRewireValueInteger = 2,
  kRewireValueAdt = 3,
  kRewireValueClosure = 4,
  kRewireValueStorage = 5
};

/* A tensor with its own copy of the elements. Host memory only. */
REWIRE_API RewireStatus rewire_value_copy_tensor(const DLTensor* tensor, RewireValue** out);
/* A tensor in the caller's memory, any device; shape and strides are copied. `release(context)` is called
 * once, on any thread, when the last reference goes; on failure before this returns. It may be NULL. */
REWIRE_API RewireStatus rewire_value_wrap_tensor(const DLTensor* tensor, void (*release)(void* context),
                                                 void* context, RewireValue** out);
/* Takes over a DLPack tensor without copying. Its deleter is called once, on any thread, when the last
 * reference goes. Ownership passes in every case: on failure the deleter has been called. kRewireUnsupported:
 * a major version of DLPack other than 1. */
REWIRE_API RewireStatus rewire_value_from_dlpack(DLManagedTensor* managed, RewireValue** out);
/* The same with a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_value_from_dlpack_versioned(DLManagedTensorVersioned* managed,
                                                           RewireValue** out);
/* An integer, which stands for a scalar where a tensor is expected. */
REWIRE_API RewireStatus rewire_value_from_integer(int64_t integer, RewireValue** out);
/* An ADT that shares the fields; the caller keeps its handles. Strided tensors are refused. */
REWIRE_API RewireStatus rewire_value_make_adt(uint32_t tag, const RewireValue* const* fields, uint32_t count,
                                              RewireValue** out);

/* Another handle of the same value. */
REWIRE_API RewireStatus rewire_value_share(const RewireValue* value, RewireValue** out);
/* Gives the handle back; with the last one of a value its memory goes. NULL: nothing. */
REWIRE_API void rewire_value_destroy(RewireValue* value);

/* What the value is. */
REWIRE_API RewireStatus rewire_value_kind(const RewireValue* value, RewireValueKind* kind);
/* What follows is kRewireInvalidArgument for a value of another kind. */

/* Describes the tensor; data, shape and strides live as long as any reference to the value. */
REWIRE_API RewireStatus rewire_value_tensor(const RewireValue* value, DLTensor* tensor);
/* A managed tensor that shares the memory and keeps it alive. The caller calls its deleter, on any thread. */
REWIRE_API RewireStatus rewire_value_to_dlpack(const RewireValue* value, DLManagedTensor** out);
/* The same as a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_value_to_dlpack_versioned(const RewireValue* value,
                                                         DLManagedTensorVersioned** out);
/* The integer. */
REWIRE_API RewireStatus rewire_value_integer(const RewireValue* value, int64_t* integer);
/* Either result may be NULL. */
REWIRE_API RewireStatus rewire_value_adt(const RewireValue* value, uint32_t* tag, uint32_t* field_count);
/* A handle of a field, the caller's. */
REWIRE_API RewireStatus rewire_value_field(const RewireValue* value, uint32_t index, RewireValue** out);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_VALUE_H_ */
