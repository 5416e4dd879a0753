/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/ffi_abi.h>. */
/* The part of the tvm-ffi C ABI that Rewire and its kernels use. TVM 0.22 and later, FlashInfer, TileLang and
 * others use the same ABI.
 *
 * Sizes, offsets and numbers are those of tvm-ffi 0.1 on 64-bit little-endian machines; static assertions
 * below check them. Plain C. All names begin with Rewire, so that the original headers can be included beside
 * this one. */
#ifndef REWIRE_VM_KERNEL_FFI_ABI_H_
#define REWIRE_VM_KERNEL_FFI_ABI_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values of type_index. Objects start at 64. Numbers from 128 on are assigned at run time. */
enum {
  kRewireFFINone = 0,
  kRewireFFIInt = 1,       /* v_int64 */
  kRewireFFIBool = 2,      /* v_int64, 0 or 1 */
  kRewireFFIFloat = 3,     /* v_float64 */
  kRewireFFIOpaquePtr = 4, /* v_ptr */
  kRewireFFIDataType = 5,  /* v_dtype */
  kRewireFFIDevice = 6,    /* v_device */
  kRewireFFIDLTensorPtr = 7,
  kRewireFFIRawStr = 8, /* v_c_str, NUL-terminated */
  kRewireFFIByteArrayPtr = 9,
  kRewireFFIRValueRef = 10,
  kRewireFFISmallStr = 11, /* v_bytes, length in small_str_len, at most 7 */
  kRewireFFISmallBytes = 12,
  kRewireFFIObject = 64,
  kRewireFFIStr = 65,
  kRewireFFIBytes = 66,
  kRewireFFIError = 67,
  kRewireFFIFunction = 68,
  kRewireFFIShape = 69,
  kRewireFFITensor = 70,
  kRewireFFIArray = 71,
  kRewireFFIMap = 72,
  kRewireFFIModule = 73
};

/* Flags of a deleter: which count fell to zero. Strong: run the destructor. Weak: free the memory. */
enum { kRewireFFIStrongGone = 1, kRewireFFIWeakGone = 2, kRewireFFIBothGone = 3 };

/* Header of every object. combined_ref_count has the strong count in its low 32 bits and the weak count in
 * the high 32. All strong references together hold one weak reference, so a new object has 0x1_0000_0001.
 * Counts are atomic. */
typedef struct RewireFFIObject {
  uint64_t combined_ref_count;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
} RewireFFIObject;

/* One argument or result. zero_padding is 0, except in a small string. */
typedef struct RewireFFIAny {
  int32_t type_index;
  union {
    uint32_t zero_padding;
    uint32_t small_str_len;
  };
  union {
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
    const char* v_c_str;
    RewireFFIObject* v_obj;
    DLDataType v_dtype;
    DLDevice v_device;
    char v_bytes[8];
    uint64_t v_uint64;
  };
} RewireFFIAny;

typedef struct RewireFFIByteArray {
  const char* data;
  size_t size;
} RewireFFIByteArray;

typedef struct RewireFFIShapeCell {
  const int64_t* data;
  size_t size;
} RewireFFIShapeCell;

typedef struct RewireFFISeqCell {
  void* data; /* RewireFFIAny[] */
  int64_t size;
  int64_t capacity;
  void (*data_deleter)(void* data);
} RewireFFISeqCell;

typedef struct RewireFFIErrorCell {
  RewireFFIByteArray kind;
  RewireFFIByteArray message;
  RewireFFIByteArray backtrace;
  void (*update_backtrace)(void* self, const RewireFFIByteArray* backtrace, int32_t mode);
  void* cause_chain;
  void* extra_context;
} RewireFFIErrorCell;

/* A packed function. It returns 0 on success, and -1 after it has set the thread's error. Arguments are
 * borrowed for the call. The caller owns the result, and sets its type_index to 0 before the call. Exported
 * symbols get the handle NULL. */
typedef int (*RewirePackedFunction)(void* handle, const RewireFFIAny* args, int32_t num_args,
                                    RewireFFIAny* result);

typedef struct RewireFFIFunctionCell {
  RewirePackedFunction safe_call;
  void* cpp_call; /* NULL, except for functions of tvm-ffi's own C++ */
} RewireFFIFunctionCell;

/* An object is a header followed by a cell. */
typedef struct RewireFFIFunctionObject {
  RewireFFIObject header;
  RewireFFIFunctionCell cell;
} RewireFFIFunctionObject;

typedef struct RewireFFITensorObject {
  RewireFFIObject header;
  DLTensor tensor;
} RewireFFITensorObject;

typedef struct RewireFFIShapeObject {
  RewireFFIObject header;
  RewireFFIShapeCell cell;
} RewireFFIShapeObject;

#ifdef __cplusplus
}
static_assert(sizeof(RewireFFIObject) == 24 && offsetof(RewireFFIObject, deleter) == 16,
              "tvm-ffi object header");
static_assert(sizeof(RewireFFIAny) == 16 && offsetof(RewireFFIAny, v_int64) == 8, "tvm-ffi any");
static_assert(sizeof(RewireFFISeqCell) == 32 && sizeof(RewireFFIErrorCell) == 72, "tvm-ffi cells");
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, strides) == 32, "DLPack tensor");
#endif

#endif /* REWIRE_VM_KERNEL_FFI_ABI_H_ */
