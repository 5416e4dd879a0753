// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver's binary interface that Rewire uses: types, constants and one list of
// functions. NVIDIA's cuda.h is not needed to build. Where it is installed, tests/simulated_cuda proves that
// both agree. Types and constants have the driver's names, in a namespace so that both headers fit into one
// program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rewire::cuda {

// NOLINTBEGIN(readability-identifier-naming)

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUhostFn = void (*)(void* user_data);

// Two handles that are no streams of anybody's: the default stream that all threads share, and each thread's
// own.
inline CUstream LegacyStream() { return reinterpret_cast<CUstream>(std::uintptr_t{1}); }
inline CUstream PerThreadStream() { return reinterpret_cast<CUstream>(std::uintptr_t{2}); }

// X(name, value, text): the results that a runtime meets. A driver may return others.
#define REWIRE_CUDA_RESULTS(X)                                                               \
  X(CUDA_SUCCESS, 0, "no error")                                                             \
  X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                         \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                            \
  X(CUDA_ERROR_NOT_INITIALIZED, 3, "the driver is not initialized")                          \
  X(CUDA_ERROR_DEINITIALIZED, 4, "the driver is shutting down")                              \
  X(CUDA_ERROR_STUB_LIBRARY, 34, "the library is a stub, not a driver")                      \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, "the device is busy or unavailable")                  \
  X(CUDA_ERROR_NO_DEVICE, 100, "there is no device")                                         \
  X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                \
  X(CUDA_ERROR_INVALID_IMAGE, 200, "the kernel image is invalid")                            \
  X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid context")                                      \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "the image has no code for this device")              \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable memory error")                         \
  X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217, "the devices cannot reach each other's memory") \
  X(CUDA_ERROR_INVALID_PTX, 218, "the PTX cannot be compiled")                               \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, "the PTX is of a newer version")                \
  X(CUDA_ERROR_OPERATING_SYSTEM, 304, "a call to the operating system failed")               \
  X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid handle")                                        \
  X(CUDA_ERROR_ILLEGAL_STATE, 401, "the object is in a state that forbids this")             \
  X(CUDA_ERROR_NOT_FOUND, 500, "the name was not found")                                     \
  X(CUDA_ERROR_NOT_READY, 600, "the work is not complete")                                   \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "a kernel or copy used an illegal address")             \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "the launch asks for too many resources")       \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, "the launch took too long")                              \
  X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")           \
  X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "the primary context is active")                 \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "the context is destroyed")                        \
  X(CUDA_ERROR_ASSERT, 710, "an assertion failed on the device")                             \
  X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "the host memory is already registered") \
  X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "the host memory is not registered")         \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715, "a kernel met an illegal instruction")              \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "a kernel used a misaligned address")                \
  X(CUDA_ERROR_LAUNCH_FAILED, 719, "a kernel failed")                                        \
  X(CUDA_ERROR_NOT_PERMITTED, 800, "the operation is not permitted")                         \
  X(CUDA_ERROR_NOT_SUPPORTED, 801, "the operation is not supported")                         \
  X(CUDA_ERROR_SYSTEM_NOT_READY, 802, "the system is not ready")                             \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, "the kernel module and the library differ")      \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "the operation cannot be captured")          \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "an earlier error ended the capture")        \
  X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, "two captures would become one")                   \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, "the capture did not begin on this stream")    \
  X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "a captured stream did not join the first one") \
  X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, "a captured stream waits for work outside")    \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, "the default stream would wait for a capture")  \
  X(CUDA_ERROR_CAPTURED_EVENT, 907, "the event was recorded in a capture")                   \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "another thread began the capture")         \
  X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910, "the graph differs too much to be updated")   \
  X(CUDA_ERROR_EXTERNAL_DEVICE, 911, "a device outside the driver failed")                   \
  X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

enum CUresult : unsigned {
#define REWIRE_CUDA_ROW(name, value, text) name = value,
  REWIRE_CUDA_RESULTS(REWIRE_CUDA_ROW)
#undef REWIRE_CUDA_ROW
};

// X(name, value): every other constant that is an enumerator in cuda.h, by the enumeration it belongs to.
#define REWIRE_CUDA_DEVICE_ATTRIBUTES(X)                             \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                    \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                          \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                          \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                          \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                           \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                           \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                           \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)              \
  X(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 9)                    \
  X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                               \
  X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12)                 \
  X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                              \
  X(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 14)                       \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                    \
  X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                              \
  X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                     \
  X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                      \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                       \
  X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                 \
  X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                           \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)          \
  X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                      \
  X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                      \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)    \
  X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                          \
  X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91) \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)       \
  X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99)                 \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106)          \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)

#define REWIRE_CUDA_POINTER_ATTRIBUTES(X)      \
  X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)           \
  X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)       \
  X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)    \
  X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)      \
  X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)         \
  X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)        \
  X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)    \
  X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11) \
  X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)       \
  X(CU_POINTER_ATTRIBUTE_MAPPED, 13)           \
  X(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17)

#define REWIRE_CUDA_FUNCTION_ATTRIBUTES(X)      \
  X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
  X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)     \
  X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)      \
  X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)      \
  X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)              \
  X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)           \
  X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)        \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)

#define REWIRE_CUDA_POOL_ATTRIBUTES(X)                    \
  X(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1)   \
  X(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 2)         \
  X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3) \
  X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                 \
  X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)              \
  X(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 6)                 \
  X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                  \
  X(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8)

#define REWIRE_CUDA_MEMORY_TYPES(X) \
  X(CU_MEMORYTYPE_HOST, 1)          \
  X(CU_MEMORYTYPE_DEVICE, 2)

#define REWIRE_CUDA_CAPTURE_STATUSES(X) \
  X(CU_STREAM_CAPTURE_STATUS_NONE, 0)   \
  X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1) \
  X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)

#define REWIRE_CUDA_CAPTURE_MODES(X)        \
  X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)       \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1) \
  X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)

#define REWIRE_CUDA_SYMBOL_STATUSES(X)       \
  X(CU_GET_PROC_ADDRESS_SUCCESS, 0)          \
  X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1) \
  X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)

#define REWIRE_CUDA_UPDATE_RESULTS(X)                \
  X(CU_GRAPH_EXEC_UPDATE_SUCCESS, 0)                 \
  X(CU_GRAPH_EXEC_UPDATE_ERROR, 1)                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 2)  \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, 3) \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, 4)

#define REWIRE_CUDA_LAUNCH_ATTRIBUTES(X)      \
  X(CU_LAUNCH_ATTRIBUTE_IGNORE, 0)            \
  X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)       \
  X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4) \
  X(CU_LAUNCH_ATTRIBUTE_PRIORITY, 8)

#define REWIRE_CUDA_LOCATION_TYPES(X) \
  X(CU_MEM_LOCATION_TYPE_INVALID, 0)  \
  X(CU_MEM_LOCATION_TYPE_DEVICE, 1)

#define REWIRE_CUDA_ACCESS_FLAGS(X)   \
  X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0) \
  X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1) \
  X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)

#define REWIRE_CUDA_ROW(name, value) name = value,
enum CUdevice_attribute : unsigned { REWIRE_CUDA_DEVICE_ATTRIBUTES(REWIRE_CUDA_ROW) };
enum CUpointer_attribute : unsigned { REWIRE_CUDA_POINTER_ATTRIBUTES(REWIRE_CUDA_ROW) };
enum CUfunction_attribute : unsigned { REWIRE_CUDA_FUNCTION_ATTRIBUTES(REWIRE_CUDA_ROW) };
enum CUmemPool_attribute : unsigned { REWIRE_CUDA_POOL_ATTRIBUTES(REWIRE_CUDA_ROW) };
enum CUmemorytype : unsigned { REWIRE_CUDA_MEMORY_TYPES(REWIRE_CUDA_ROW) };
enum CUstreamCaptureStatus : unsigned { REWIRE_CUDA_CAPTURE_STATUSES(REWIRE_CUDA_ROW) };
enum CUstreamCaptureMode : unsigned { REWIRE_CUDA_CAPTURE_MODES(REWIRE_CUDA_ROW) };
enum CUdriverProcAddressQueryResult : unsigned { REWIRE_CUDA_SYMBOL_STATUSES(REWIRE_CUDA_ROW) };
enum CUgraphExecUpdateResult : unsigned { REWIRE_CUDA_UPDATE_RESULTS(REWIRE_CUDA_ROW) };
enum CUlaunchAttributeID : unsigned { REWIRE_CUDA_LAUNCH_ATTRIBUTES(REWIRE_CUDA_ROW) };
enum CUmemLocationType : unsigned { REWIRE_CUDA_LOCATION_TYPES(REWIRE_CUDA_ROW) };
enum CUmemAccess_flags : unsigned { REWIRE_CUDA_ACCESS_FLAGS(REWIRE_CUDA_ROW) };
#undef REWIRE_CUDA_ROW

// Options of the just-in-time compiler: cuModuleLoadDataEx takes them, Rewire gives only those.
enum CUjit_option : unsigned {
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

// Flags of single functions. Some are macros in cuda.h, so these have names of ours.
enum : unsigned {
  kStreamNonBlocking = 1,      // cuStreamCreate: no implicit order with the legacy default stream
  kEventDefault = 0,           // cuEventCreate
  kEventBlockingSync = 1,      // cuEventCreate: the waiting thread sleeps
  kEventDisableTiming = 2,     // cuEventCreate
  kHostAllocPortable = 1,      // cuMemHostAlloc: pinned for all contexts
  kHostAllocDeviceMap = 2,     // cuMemHostAlloc: kernels may use the address
  kHostRegisterPortable = 1,   // cuMemHostRegister
  kHostRegisterDeviceMap = 2,  // cuMemHostRegister
  kHostRegisterReadOnly = 8,   // cuMemHostRegister
};

struct CUuuid {
  char bytes[16];
};

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

union alignas(8) CUlaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int priority;
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode errorNode;
  CUgraphNode errorFromNode;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace rewire::cuda
