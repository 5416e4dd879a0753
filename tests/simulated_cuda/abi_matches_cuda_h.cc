// SPDX-License-Identifier: Apache-2.0
// Compiled where NVIDIA's headers are found: our constants, layouts and signatures are theirs.
#include <cstddef>
#include <type_traits>

#include "rewire/devices/cuda/driver_functions.h"
#include "rewire/devices/cuda/nvrtc_abi.h"

namespace {
// Before cuda.h, whose macros rename functions. A pasted name is not renamed.
#define REWIRE_TYPE_OF_CALL(name, symbol, parameters, need) \
  using CallOf_##symbol = decltype(rewire::cuda::CudaDriver::name);
REWIRE_CUDA_FUNCTIONS(REWIRE_TYPE_OF_CALL)
}  // namespace

#include <cuda.h>
#include <nvrtc.h>

namespace {

namespace ours = rewire::cuda;

#define REWIRE_SAME_RESULT(name, value, text) static_assert(unsigned{ours::name} == unsigned{::name});
REWIRE_CUDA_RESULTS(REWIRE_SAME_RESULT)
#define REWIRE_SAME_VALUE(name, value) static_assert(unsigned{ours::name} == unsigned{::name});
REWIRE_CUDA_DEVICE_ATTRIBUTES(REWIRE_SAME_VALUE)
REWIRE_CUDA_POINTER_ATTRIBUTES(REWIRE_SAME_VALUE)
REWIRE_CUDA_FUNCTION_ATTRIBUTES(REWIRE_SAME_VALUE)
REWIRE_CUDA_POOL_ATTRIBUTES(REWIRE_SAME_VALUE)
REWIRE_CUDA_MEMORY_TYPES(REWIRE_SAME_VALUE)
REWIRE_CUDA_CAPTURE_STATUSES(REWIRE_SAME_VALUE)
REWIRE_CUDA_CAPTURE_MODES(REWIRE_SAME_VALUE)
REWIRE_CUDA_SYMBOL_STATUSES(REWIRE_SAME_VALUE)
REWIRE_CUDA_UPDATE_RESULTS(REWIRE_SAME_VALUE)
REWIRE_CUDA_LAUNCH_ATTRIBUTES(REWIRE_SAME_VALUE)
REWIRE_CUDA_LOCATION_TYPES(REWIRE_SAME_VALUE)
REWIRE_CUDA_ACCESS_FLAGS(REWIRE_SAME_VALUE)
REWIRE_NVRTC_RESULTS(REWIRE_SAME_VALUE)
REWIRE_SAME_VALUE(CU_JIT_INFO_LOG_BUFFER, )
REWIRE_SAME_VALUE(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, )
REWIRE_SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER, )
REWIRE_SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, )

static_assert(ours::kStreamNonBlocking == unsigned{CU_STREAM_NON_BLOCKING});
static_assert(ours::kEventDefault == unsigned{CU_EVENT_DEFAULT});
static_assert(ours::kEventBlockingSync == unsigned{CU_EVENT_BLOCKING_SYNC});
static_assert(ours::kEventDisableTiming == unsigned{CU_EVENT_DISABLE_TIMING});
static_assert(ours::kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(ours::kHostAllocDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(ours::kHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(ours::kHostRegisterDeviceMap == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(ours::kHostRegisterReadOnly == CU_MEMHOSTREGISTER_READ_ONLY);

#define REWIRE_SAME_LAYOUT(type) \
  static_assert(sizeof(ours::type) == sizeof(::type) && alignof(ours::type) == alignof(::type));
#define REWIRE_SAME_PLACE(type, member) \
  static_assert(offsetof(ours::type, member) == offsetof(::type, member));
REWIRE_SAME_LAYOUT(CUuuid)
REWIRE_SAME_LAYOUT(CUmemLocation)
REWIRE_SAME_PLACE(CUmemLocation, type)
REWIRE_SAME_PLACE(CUmemLocation, id)
REWIRE_SAME_LAYOUT(CUmemAccessDesc)
REWIRE_SAME_PLACE(CUmemAccessDesc, flags)
REWIRE_SAME_LAYOUT(CUlaunchAttribute)
REWIRE_SAME_PLACE(CUlaunchAttribute, value)
REWIRE_SAME_LAYOUT(CUlaunchAttributeValue)
REWIRE_SAME_LAYOUT(CUlaunchConfig)
REWIRE_SAME_PLACE(CUlaunchConfig, gridDimZ)
REWIRE_SAME_PLACE(CUlaunchConfig, blockDimX)
REWIRE_SAME_PLACE(CUlaunchConfig, sharedMemBytes)
REWIRE_SAME_PLACE(CUlaunchConfig, hStream)
REWIRE_SAME_PLACE(CUlaunchConfig, attrs)
REWIRE_SAME_PLACE(CUlaunchConfig, numAttrs)
REWIRE_SAME_LAYOUT(CUgraphExecUpdateResultInfo)
REWIRE_SAME_PLACE(CUgraphExecUpdateResultInfo, errorNode)
REWIRE_SAME_PLACE(CUgraphExecUpdateResultInfo, errorFromNode)

// Two functions are called alike if they have as many parameters, each of the same size and kind.
template <typename A, typename B>
constexpr bool kPassedAlike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>&& std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>;
template <typename A, typename B>
struct CalledAlike : std::false_type {};
template <typename A, typename B, typename... As, typename... Bs>
requires(sizeof...(As) == sizeof...(Bs)) struct CalledAlike<A (*)(As...), B (*)(Bs...)>
    : std::bool_constant<kPassedAlike<A, B> && (kPassedAlike<As, Bs> && ...)> {
};

#define REWIRE_SAME_CALL(name, symbol, parameters, need) \
  static_assert(CalledAlike<CallOf_##symbol, decltype(&::symbol)>::value, #symbol);
REWIRE_CUDA_FUNCTIONS(REWIRE_SAME_CALL)
#define REWIRE_SAME_NVRTC_CALL(name, result, parameters) \
  static_assert(CalledAlike<decltype(ours::Nvrtc::name), decltype(&::name)>::value, #name);
REWIRE_NVRTC_FUNCTIONS(REWIRE_SAME_NVRTC_CALL)

}  // namespace
