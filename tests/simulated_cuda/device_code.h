// SPDX-License-Identifier: Apache-2.0
// Included by force in front of CUDA C++ code: g++ then makes a module image of the simulated CUDA driver
// from it. Covers indices, shared memory, barriers, shuffles, votes, atomics, f16. Not covered: inline PTX,
// matrix units, TMA, cooperative groups, arrays of device pointers in device memory.
//
// REWIRE_SIMULATED_KERNEL(name) puts a kernel into the image's table. The simulated NVRTC writes these lines
// itself.
#pragma once

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include "rewire/tests/simulated_cuda/device_image.h"

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define REWIRE_SIMULATED_CUDA 1
#define __global__
#define __device__ __attribute__((visibility("default")))
#define __constant__ __attribute__((visibility("default")))
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
// A thread of the operating system runs one block at a time, so what is its own is the block's.
#define __shared__ static thread_local
// `extern __shared__ T name[];` in a form that both compilers take. The driver gives the room at the launch.
#define REWIRE_DYNAMIC_SHARED(type, name) \
  type* name = reinterpret_cast<type*>(rewire_simulated::Self().dynamic_shared)

// Hidden: each image has its own, though several are open at once.
#pragma GCC visibility push(hidden)
namespace rewire_simulated {

inline SimulatedThread& Self() {
  static thread_local SimulatedThread self;
  return self;
}
inline const SimulatedServices& Services() { return *Self().services; }

inline SimulatedImage& Image() {
  static SimulatedImage image = {kSimulatedImageVersion, nullptr, [] { return &Self(); }};
  return image;
}

template <typename T>
constexpr SimulatedParameter kParameter = {!std::is_pointer_v<T> ? unsigned{kSimulatedValue}
                                           : std::is_const_v<std::remove_pointer_t<T>>
                                               ? unsigned{kSimulatedConstPointer}
                                               : unsigned{kSimulatedPointer},
                                           sizeof(T)};

template <auto kFunction>
struct Entry;
template <typename... Types, void (*kFunction)(Types...)>
struct Entry<kFunction> {
  static constexpr SimulatedParameter kParameters[sizeof...(Types) + 1] = {kParameter<Types>..., {}};
  template <size_t... kAt>
  static void CallWith([[maybe_unused]] void** arguments, std::index_sequence<kAt...>) {
    kFunction(*static_cast<std::remove_reference_t<Types>*>(arguments[kAt])...);
  }
  static void Call(void** arguments) { CallWith(arguments, std::make_index_sequence<sizeof...(Types)>()); }
  static SimulatedKernel Row(const char* name) {
    return {name, Call, kParameters, sizeof...(Types), nullptr};
  }
};

struct Registration {
  explicit Registration(SimulatedKernel row) : kernel(row) {
    kernel.next = Image().kernels;
    Image().kernels = &kernel;
  }
  SimulatedKernel kernel;
};

template <typename To, typename From>
inline To Bits(From from) {
  static_assert(sizeof(To) <= 8 && sizeof(From) <= 8);
  uint64_t word = 0;
  memcpy(&word, &from, sizeof from);
  To to;
  memcpy(&to, &word, sizeof to);
  return to;
}

inline unsigned LinearThread() {
  const SimulatedThread& self = Self();
  return self.thread_index.x +
         self.block_dim.x * (self.thread_index.y + self.block_dim.y * self.thread_index.z);
}
inline unsigned Lane() { return LinearThread() % kSimulatedWarp; }

// The value of the lane that `from` names, or this thread's own if it is none of `mask`.
template <typename T>
inline T Shuffle(unsigned mask, T value, unsigned from) {
  uint64_t lanes[kSimulatedWarp];
  Services().exchange(mask, Bits<uint64_t>(value), lanes);
  return from < kSimulatedWarp && (mask >> from & 1) != 0 ? Bits<T>(lanes[from]) : value;
}

}  // namespace rewire_simulated
#pragma GCC visibility pop

extern "C" __attribute__((visibility("default"), weak)) const SimulatedImage* rewire_simulated_image() {
  return &rewire_simulated::Image();
}

#define REWIRE_SIMULATED_PASTE2(a, b) a##b
#define REWIRE_SIMULATED_PASTE(a, b) REWIRE_SIMULATED_PASTE2(a, b)
#define REWIRE_SIMULATED_KERNEL_AS(name, ...)                         \
  static const rewire_simulated::Registration REWIRE_SIMULATED_PASTE( \
      rewire_kernel_, __COUNTER__)(rewire_simulated::Entry<&__VA_ARGS__>::Row(name));
#define REWIRE_SIMULATED_KERNEL(name) REWIRE_SIMULATED_KERNEL_AS(#name, name)

using dim3 = SimulatedDim;
using uint3 = SimulatedDim;
struct int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

#define threadIdx (rewire_simulated::Self().thread_index)
#define blockIdx (rewire_simulated::Self().block_index)
#define blockDim (rewire_simulated::Self().block_dim)
#define gridDim (rewire_simulated::Self().grid_dim)
constexpr int warpSize = kSimulatedWarp;

inline void __syncthreads() { rewire_simulated::Services().barrier(0); }
inline int __syncthreads_count(int predicate) { return rewire_simulated::Services().barrier(predicate); }
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(predicate == 0) == 0; }
inline unsigned __activemask() { return rewire_simulated::Services().live_lanes(); }
inline void __syncwarp(unsigned mask = 0xffffffffU) {
  uint64_t lanes[kSimulatedWarp];
  rewire_simulated::Services().exchange(mask, 0, lanes);
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
[[noreturn]] inline void __trap() {
  rewire_simulated::Services().trap();
  __builtin_unreachable();
}

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = kSimulatedWarp) {
  const unsigned base = rewire_simulated::Lane() / width * width;
  return rewire_simulated::Shuffle(mask, value, base + static_cast<unsigned>(from) % width);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = kSimulatedWarp) {
  const unsigned lane = rewire_simulated::Lane();
  return rewire_simulated::Shuffle(mask, value, lane % width >= by ? lane - by : lane);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = kSimulatedWarp) {
  const unsigned lane = rewire_simulated::Lane();
  return rewire_simulated::Shuffle(mask, value,
                                   lane % width + by < static_cast<unsigned>(width) ? lane + by : lane);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = kSimulatedWarp) {
  const unsigned lane = rewire_simulated::Lane();
  const unsigned from = lane ^ static_cast<unsigned>(with);
  return rewire_simulated::Shuffle(mask, value, from / width <= lane / width ? from : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  uint64_t lanes[kSimulatedWarp];
  rewire_simulated::Services().exchange(mask, predicate != 0, lanes);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < kSimulatedWarp; ++lane)
    if ((mask >> lane & 1) != 0 && lanes[lane] != 0) votes |= 1U << lane;
  return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }

// Atomics of the types that CUDA has them for; floats by comparing and swapping.
template <typename T, typename Change>
inline T rewire_atomic_change(T* at, Change change) {
  using Word =
      std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  Word* word = reinterpret_cast<Word*>(at);
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(
      word, &old, rewire_simulated::Bits<Word>(static_cast<T>(change(rewire_simulated::Bits<T>(old)))), false,
      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return rewire_simulated::Bits<T>(old);
}
template <typename T>
using RewireSame = std::type_identity_t<T>;
template <typename T>
inline T atomicAdd(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T old) { return old + by; });
}
template <typename T>
inline T atomicSub(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T old) { return old - by; });
}
template <typename T>
inline T atomicMax(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T old) { return old < by ? by : old; });
}
template <typename T>
inline T atomicMin(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T old) { return by < old ? by : old; });
}
template <typename T>
inline T atomicAnd(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T old) { return old & by; });
}
template <typename T>
inline T atomicOr(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T old) { return old | by; });
}
template <typename T>
inline T atomicXor(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T old) { return old ^ by; });
}
template <typename T>
inline T atomicExch(T* at, RewireSame<T> by) {
  return rewire_atomic_change(at, [by](T) { return by; });
}
template <typename T>
inline T atomicCAS(T* at, RewireSame<T> expected, RewireSame<T> by) {
  return rewire_atomic_change(at, [=](T old) { return old == expected ? by : old; });
}

// The declarations of CUDA's headers about arithmetic.
template <typename T>
inline T __ldg(const T* at) {
  return *at;
}
template <typename A, typename B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) inline std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}
template <typename A, typename B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) inline std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
inline float rsqrtf(float x) { return 1.0F / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __fmul_rn(float x, float y) { return x * y; }  // compiled without fused sums
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0F) : 0.0F; }
inline int __float_as_int(float x) { return rewire_simulated::Bits<int>(x); }
inline unsigned __float_as_uint(float x) { return rewire_simulated::Bits<unsigned>(x); }
inline float __int_as_float(int x) { return rewire_simulated::Bits<float>(x); }
inline float __uint_as_float(unsigned x) { return rewire_simulated::Bits<float>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(nearbyintf(x)); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return c;
}

#if defined(__FLT16_MANT_DIG__) && !defined(__clang__)
using __half = _Float16;
using half = _Float16;
inline float __half2float(__half x) { return static_cast<float>(x); }
inline __half __float2half(float x) { return static_cast<__half>(x); }
inline __half __float2half_rn(float x) { return static_cast<__half>(x); }
#endif

// The address by which host code knows what `pointer` points to: for tests of where a kernel writes.
inline uint64_t rewire_address_for_host(const void* pointer) {
  return rewire_simulated::Services().address_for_host(pointer);
}
