/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/value.h>. */
/* Values: what functions take and return. A value is a tensor, an integer, an ADT (a tagged tuple of values)
 * or a closure. Values are immutable, except for the elements of tensors. The rules in status.h hold.
 *
 * A handle is one counted reference. It may be used and destroyed on any thread, but by one thread at a time.
 * It may outlive the VM and the program that made the value.
 *
 * Tensors are described by DLPack's DLTensor: shape and strides count elements, strides NULL means row-major
 * without gaps, and the first element is at data + byte_offset. Ranks go up to 32. */
#ifndef REWIRE_VM_C_API_VALUE_H_
#define REWIRE_VM_C_API_VALUE_H_

#include "rewire/vm/c_api/status.h"
#include "rewire/vm/kernel/dlpack_versioned.h"

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

/* Makes a tensor with its own copy of the elements. Host memory only. */
REWIRE_API RewireStatus rewire_value_copy_tensor(const DLTensor* tensor, RewireValue** out);
/* Makes a tensor in the caller's memory, on any device. Shape and strides are copied. `release(context)` is
 * called once, on any thread, when the last reference is gone; if this fails, before it returns. `release`
 * may be NULL. */
REWIRE_API RewireStatus rewire_value_wrap_tensor(const DLTensor* tensor, void (*release)(void* context),
                                                 void* context, RewireValue** out);
/* Takes over a DLPack tensor without copying. Its deleter is called once, on any thread, when the last
 * reference is gone. Ownership passes in every case: after a failure the deleter has been called. Errors:
 * kRewireUnsupported for a major version of DLPack other than 1. */
REWIRE_API RewireStatus rewire_value_from_dlpack(DLManagedTensor* managed, RewireValue** out);
/* The same with a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_value_from_dlpack_versioned(DLManagedTensorVersioned* managed,
                                                           RewireValue** out);
/* Makes an integer, which stands for a scalar where a tensor is expected. */
REWIRE_API RewireStatus rewire_value_from_integer(int64_t integer, RewireValue** out);
/* Makes an ADT that shares the fields; the caller keeps its handles. Strided tensors are refused. */
REWIRE_API RewireStatus rewire_value_make_adt(uint32_t tag, const RewireValue* const* fields, uint32_t count,
                                              RewireValue** out);

/* Makes another handle of the same value. */
REWIRE_API RewireStatus rewire_value_share(const RewireValue* value, RewireValue** out);
/* Destroys the handle. The value's memory is freed with its last handle. NULL is allowed. */
REWIRE_API void rewire_value_destroy(RewireValue* value);

/* Returns the kind of the value. */
REWIRE_API RewireStatus rewire_value_kind(const RewireValue* value, RewireValueKind* kind);
/* The functions below return kRewireInvalidArgument for a value of another kind. */

/* Describes the tensor. Data, shape and strides live as long as any reference to the value. */
REWIRE_API RewireStatus rewire_value_tensor(const RewireValue* value, DLTensor* tensor);
/* Returns a managed tensor that shares the memory and keeps it alive. The caller calls its deleter, on any
 * thread. */
REWIRE_API RewireStatus rewire_value_to_dlpack(const RewireValue* value, DLManagedTensor** out);
/* The same as a versioned DLPack tensor. */
REWIRE_API RewireStatus rewire_value_to_dlpack_versioned(const RewireValue* value,
                                                         DLManagedTensorVersioned** out);
/* Returns the integer. */
REWIRE_API RewireStatus rewire_value_integer(const RewireValue* value, int64_t* integer);
/* Returns tag and number of fields of an ADT. Either result may be NULL. */
REWIRE_API RewireStatus rewire_value_adt(const RewireValue* value, uint32_t* tag, uint32_t* field_count);
/* Returns a handle of a field, which the caller owns. */
REWIRE_API RewireStatus rewire_value_field(const RewireValue* value, uint32_t index, RewireValue** out);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_VALUE_H_ */
