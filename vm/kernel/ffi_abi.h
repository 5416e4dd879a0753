/* SPDX-License-Identifier: Apache-2.0 */
/* The tvm-ffi C ABI, as far as Rewire and its kernels use it: sizes, offsets and numbers of tvm-ffi 0.1 on
 * 64-bit little-endian machines (TVM 0.22 and later, FlashInfer, TileLang and others speak it). Plain C;
 * checked by static assertions below. Names carry the prefix Rewire so that the original headers can be
 * included beside this one. */
#ifndef REWIRE_VM_KERNEL_FFI_ABI_H_
#define REWIRE_VM_KERNEL_FFI_ABI_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* type_index of a value. Objects start at 64; 128 and above are handed out at run time. */
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

/* deleter flags: which count fell to zero. Strong: run the destructor. Weak: free the memory. */
enum { kRewireFFIStrongGone = 1, kRewireFFIWeakGone = 2, kRewireFFIBothGone = 3 };

/* Header of every object. combined_ref_count: strong count in the low 32 bits, weak in the high 32. All
 * strong references together hold one weak one; a new object has 0x1_0000_0001. Counts are atomic. */
typedef struct RewireFFIObject {
  uint64_t combined_ref_count;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
} RewireFFIObject;

/* One argument or result. zero_padding is 0 unless the value is a small string. */
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

/* A packed function: 0 on success, -1 with the thread's error set. Arguments are borrowed for the call; the
 * result is the caller's, who sets its type_index to 0 before the call. Exported symbols get handle NULL. */
typedef int (*RewirePackedFunction)(void* handle, const RewireFFIAny* args, int32_t num_args,
                                    RewireFFIAny* result);

typedef struct RewireFFIFunctionCell {
  RewirePackedFunction safe_call;
  void* cpp_call; /* NULL for functions that are not tvm-ffi's own C++ */
} RewireFFIFunctionCell;

/* Objects: header, then cell. */
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
