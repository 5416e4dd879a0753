// SPDX-License-Identifier: Apache-2.0
//
// The C dialect of device code: what OpenCL C and CUDA C++ spell differently. All device code is compiled
// after arguments.h, kernels/contract/scalar_functions.h, this text and tiles.h. REWIRE_F16 stores real
// numbers as float16; they are computed in float32 all the same.
#if defined(__OPENCL_VERSION__)
#define KERNEL(name) __kernel void name
#define FUNCTION static inline
#define GLOBAL __global
#define SHARED __local
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GLOBAL_ID(i) ((int)get_global_id(i))
#define LOCAL_ID(i) ((int)get_local_id(i))
#define GROUP_ID(i) ((int)get_group_id(i))
#define INFINITE ((float)INFINITY)
#define BITS_OF(x) as_uint(x)
typedef long i64;
typedef uchar u8;
#if defined(REWIRE_F16)
typedef half real;
#define LOAD(p, i) vload_half(i, p)
#define STORE(p, i, v) vstore_half_rte(v, i, p)
#endif
#else
#define KERNEL(name) extern "C" __global__ void name
#define FUNCTION static __device__ __forceinline__
#define GLOBAL
#define SHARED __shared__
#define BARRIER() __syncthreads()
#define REWIRE_AXIS(what, i) ((int)((i) == 0 ? what.x : (i) == 1 ? what.y : what.z))
#define LOCAL_ID(i) REWIRE_AXIS(threadIdx, i)
#define GROUP_ID(i) REWIRE_AXIS(blockIdx, i)
#define GLOBAL_ID(i) (REWIRE_AXIS(blockIdx, i) * REWIRE_AXIS(blockDim, i) + REWIRE_AXIS(threadIdx, i))
#define INFINITE __int_as_float(0x7F800000)
#define BITS_OF(x) __float_as_uint(x)
#define fabs fabsf
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#if defined(REWIRE_F16) && (defined(__CUDACC_RTC__) || defined(__NVCC__))
// NVRTC comes without CUDA's headers, so the two instructions are written out (PTX ISA, cvt).
typedef unsigned short real;
FUNCTION float float_of_half(real half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}
FUNCTION real half_of_float(float value) {
  real half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
}
#define LOAD(p, i) float_of_half((p)[i])
#define STORE(p, i, v) ((p)[i] = half_of_float(v))
#elif defined(REWIRE_F16)
#include <cuda_fp16.h>
typedef __half real;
#define LOAD(p, i) __half2float((p)[i])
#define STORE(p, i, v) ((p)[i] = __float2half_rn(v))
#endif
#endif
#if !defined(REWIRE_F16)
typedef float real;
#define LOAD(p, i) ((p)[i])
#define STORE(p, i, v) ((p)[i] = (v))
#endif

// True for NaN, whatever the compiler may assume of floats.
FUNCTION int is_nan(float x) { return x != x; }

// Functions of scalar_functions.h, of float.
FUNCTION float at_least(float x, float low) { return x < low ? low : x; }
FUNCTION float at_most(float x, float high) { return high < x ? high : x; }
// A function of its own: compilers make one operation of a product and a sum within one expression alone.
FUNCTION float rounded_product(float a, float b) {
#if defined(__OPENCL_VERSION__)
#pragma OPENCL FP_CONTRACT OFF
  return a * b;
#elif defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
// 1 is what 1 less a tanh needs to be 0, and OpenCL allows a few units less.
FUNCTION float held_tanh(float x) { return fabs(x) > 9.5f ? (x > 0.0f ? 1.0f : -1.0f) : tanh(x); }
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define ABS(a) fabs(a)
#define PRODUCT(a, b) rounded_product(a, b)
#define MUL_ADD(a, b, c) ((a) * (b) + (c))
#define LESS(a, b) ((a) < (b))
#define IS_NAN(a) is_nan(a)
#define EITHER(p, q) ((p) || (q))
#define SELECT(p, a, b) ((p) ? (a) : (b))
#define AT_LEAST(x, low) at_least(x, low)
#define AT_MOST(x, high) at_most(x, high)
#define NUMBER(c) ((float)(c))
#define EXP(a) exp(a)
#define EXPM1(a) expm1(a)
#define LOG1P(a) log1p(a)
#define TANH(a) held_tanh(a)
#define ERF(a) erf(a)
#define CALL(name, ...) name(__VA_ARGS__)
#define OF_ONE(name, x, ...) \
  FUNCTION float name(float x) { return __VA_ARGS__; }
#define OF_TWO(name, x, y, ...) \
  FUNCTION float name(float x, float y) { return __VA_ARGS__; }
#define OF_THREE(name, x, y, z, ...) \
  FUNCTION float name(float x, float y, float z) { return __VA_ARGS__; }
REWIRE_FUNCTIONS_OF_NUMBERS(OF_ONE, OF_TWO, OF_THREE)
REWIRE_FUNCTIONS_OF_REALS(OF_ONE, OF_TWO, OF_THREE)
#undef NUMBER
#undef NEG
#undef ABS
#undef MUL
#undef IS_NAN
#undef AT_LEAST
#undef AT_MOST
#undef OF_ONE
#undef OF_TWO
#undef OF_THREE

// The position of element i in an operand with these steps.
#define POSITION_OF(i, shape, steps, position)                   \
  {                                                              \
    int rest = i;                                                \
    position = 0;                                                \
    for (int axis = shape.rank - 1; axis >= 0; --axis) {         \
      int row = rest / shape.dims[axis];                         \
      position += (rest - row * shape.dims[axis]) * steps[axis]; \
      rest = row;                                                \
    }                                                            \
  }

// Integers whose type is an argument, the same for all threads. They are computed in 64 bits, and stored in
// as many as they have. So they wrap.
FUNCTION i64 load_integer(GLOBAL const u8* p, int type, int i) {
  switch (type) {
    case kTypeU8:
      return p[i];
    case kTypeI8:
      return ((GLOBAL const signed char*)p)[i];
    case kTypeU16:
      return ((GLOBAL const ushort*)p)[i];
    case kTypeI16:
      return ((GLOBAL const short*)p)[i];
    case kTypeI32:
      return ((GLOBAL const int*)p)[i];
    case kTypeI64:
      return ((GLOBAL const i64*)p)[i];
    default:  // kTypeBool
      return p[i] != 0 ? 1 : 0;
  }
}
FUNCTION void store_wrapped(GLOBAL u8* p, int type, int i, i64 value) {
  switch (type) {
    case kTypeU8:
    case kTypeI8:
      p[i] = (u8)value;
      break;
    case kTypeU16:
    case kTypeI16:
      ((GLOBAL ushort*)p)[i] = (ushort)value;
      break;
    case kTypeI32:
      ((GLOBAL int*)p)[i] = (int)value;
      break;
    case kTypeI64:
      ((GLOBAL i64*)p)[i] = value;
      break;
    default:  // kTypeBool
      p[i] = value != 0 ? 1 : 0;
  }
}
// A number of 8 or 16 bits, held in the type's range; NaN becomes the smallest number of it.
FUNCTION void store_integer(GLOBAL u8* p, int type, int i, float value) {
  int is_signed = type == kTypeI8 || type == kTypeI16;
  int is_byte = type == kTypeU8 || type == kTypeI8;
  int values = is_byte ? 256 : 65536;
  int least = is_signed ? -values / 2 : 0;
  int most = least + values - 1;
  int stored = !(value > (float)least) ? least : value >= (float)most ? most : (int)value;
  if (is_byte) {
    p[i] = (u8)stored;
  } else {
    ((GLOBAL ushort*)p)[i] = (ushort)stored;
  }
}
