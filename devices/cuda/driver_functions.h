// SPDX-License-Identifier: Apache-2.0
// The driver functions that Rewire calls, in one list: what opens the driver and what simulates it both read
// it.
#pragma once

#include "rewire/devices/cuda/driver_abi.h"

namespace rewire::cuda {

// X(name, symbol, parameters, need): `name` is the member of CudaDriver, `symbol` what the library exports.
// `need` is required, or optional where a driver may lack it and Rewire does without.
#define REWIRE_CUDA_FUNCTIONS(X)                                                                             \
  X(cuInit, cuInit, (unsigned flags), required)                                                              \
  X(cuDriverGetVersion, cuDriverGetVersion, (int* version), required)                                        \
  X(cuGetProcAddress, cuGetProcAddress_v2,                                                                   \
    (const char* symbol, void** function, int version, std::uint64_t flags,                                  \
     CUdriverProcAddressQueryResult* status),                                                                \
    optional)                                                                                                \
  X(cuGetErrorName, cuGetErrorName, (CUresult error, const char** name), required)                           \
  X(cuGetErrorString, cuGetErrorString, (CUresult error, const char** text), required)                       \
  X(cuDeviceGetCount, cuDeviceGetCount, (int* count), required)                                              \
  X(cuDeviceGet, cuDeviceGet, (CUdevice * device, int ordinal), required)                                    \
  X(cuDeviceGetName, cuDeviceGetName, (char* name, int size, CUdevice device), required)                     \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device), \
    required)                                                                                                \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (std::size_t * bytes, CUdevice device), required)                 \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), optional)                         \
  X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int* can, CUdevice device, CUdevice peer), optional)      \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), required)    \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device), required)                    \
  X(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext context), required)                                         \
  X(cuCtxGetCurrent, cuCtxGetCurrent, (CUcontext * context), required)                                       \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context), required)                                    \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * context), required)                                    \
  X(cuCtxGetDevice, cuCtxGetDevice, (CUdevice * device), required)                                           \
  X(cuCtxSynchronize, cuCtxSynchronize, (), required)                                                        \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int* least, int* greatest), optional)         \
  X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), optional)                \
  X(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * pointer, std::size_t bytes), required)                         \
  X(cuMemFree, cuMemFree_v2, (CUdeviceptr pointer), required)                                                \
  X(cuMemAllocAsync, cuMemAllocAsync, (CUdeviceptr * pointer, std::size_t bytes, CUstream stream), optional) \
  X(cuMemFreeAsync, cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), optional)                        \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync,                                                        \
    (CUdeviceptr * pointer, std::size_t bytes, CUmemoryPool pool, CUstream stream), optional)                \
  X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), optional)  \
  X(cuMemPoolSetAttribute, cuMemPoolSetAttribute,                                                            \
    (CUmemoryPool pool, CUmemPool_attribute attribute, void* value), optional)                               \
  X(cuMemPoolGetAttribute, cuMemPoolGetAttribute,                                                            \
    (CUmemoryPool pool, CUmemPool_attribute attribute, void* value), optional)                               \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo, (CUmemoryPool pool, std::size_t bytes), optional)                      \
  X(cuMemPoolSetAccess, cuMemPoolSetAccess,                                                                  \
    (CUmemoryPool pool, const CUmemAccessDesc* map, std::size_t count), optional)                            \
  X(cuMemHostAlloc, cuMemHostAlloc, (void** pointer, std::size_t bytes, unsigned flags), required)           \
  X(cuMemFreeHost, cuMemFreeHost, (void* pointer), required)                                                 \
  X(cuMemHostRegister, cuMemHostRegister_v2, (void* pointer, std::size_t bytes, unsigned flags), required)   \
  X(cuMemHostUnregister, cuMemHostUnregister, (void* pointer), required)                                     \
  X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                                 \
    (CUdeviceptr * device, void* host, unsigned flags), required)                                            \
  X(cuMemGetInfo, cuMemGetInfo_v2, (std::size_t * free, std::size_t * total), required)                      \
  X(cuMemGetAddressRange, cuMemGetAddressRange_v2,                                                           \
    (CUdeviceptr * base, std::size_t * bytes, CUdeviceptr pointer), required)                                \
  X(cuPointerGetAttribute, cuPointerGetAttribute,                                                            \
    (void* value, CUpointer_attribute attribute, CUdeviceptr pointer), required)                             \
  X(cuPointerGetAttributes, cuPointerGetAttributes,                                                          \
    (unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer), required)         \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                                 \
    (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream), required)                        \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                                 \
    (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream), required)                              \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                                 \
    (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream), required)                        \
  X(cuMemcpyAsync, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream),    \
    required)                                                                                                \
  X(cuMemcpyPeerAsync, cuMemcpyPeerAsync,                                                                    \
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes,      \
     CUstream stream),                                                                                       \
    required)                                                                                                \
  X(cuMemsetD8Async, cuMemsetD8Async,                                                                        \
    (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream), required)                     \
  X(cuMemsetD16Async, cuMemsetD16Async,                                                                      \
    (CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream), required)                    \
  X(cuMemsetD32Async, cuMemsetD32Async,                                                                      \
    (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream), required)                          \
  X(cuStreamCreate, cuStreamCreate, (CUstream * stream, unsigned flags), required)                           \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority,                                                  \
    (CUstream * stream, unsigned flags, int priority), required)                                             \
  X(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream), required)                                        \
  X(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream), required)                                   \
  X(cuStreamQuery, cuStreamQuery, (CUstream stream), required)                                               \
  X(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), required)        \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), optional)    \
  X(cuStreamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph * graph), optional)                    \
  X(cuStreamIsCapturing, cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status), optional)   \
  X(cuLaunchHostFunc, cuLaunchHostFunc, (CUstream stream, CUhostFn function, void* user_data), required)     \
  X(cuEventCreate, cuEventCreate, (CUevent * event, unsigned flags), required)                               \
  X(cuEventDestroy, cuEventDestroy_v2, (CUevent event), required)                                            \
  X(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream), required)                                \
  X(cuEventQuery, cuEventQuery, (CUevent event), required)                                                   \
  X(cuEventSynchronize, cuEventSynchronize, (CUevent event), required)                                       \
  X(cuEventElapsedTime, cuEventElapsedTime, (float* milliseconds, CUevent from, CUevent to), required)       \
  X(cuModuleLoadData, cuModuleLoadData, (CUmodule * module, const void* image), required)                    \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx,                                                                  \
    (CUmodule * module, const void* image, unsigned count, CUjit_option* options, void** values), required)  \
  X(cuModuleUnload, cuModuleUnload, (CUmodule module), required)                                             \
  X(cuModuleGetFunction, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name),    \
    required)                                                                                                \
  X(cuModuleGetGlobal, cuModuleGetGlobal_v2,                                                                 \
    (CUdeviceptr * pointer, std::size_t * bytes, CUmodule module, const char* name), required)               \
  X(cuFuncGetAttribute, cuFuncGetAttribute,                                                                  \
    (int* value, CUfunction_attribute attribute, CUfunction function), required)                             \
  X(cuFuncSetAttribute, cuFuncSetAttribute,                                                                  \
    (CUfunction function, CUfunction_attribute attribute, int value), required)                              \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,                \
    (int* blocks, CUfunction function, int block_size, std::size_t dynamic_shared_bytes), optional)          \
  X(cuLaunchKernel, cuLaunchKernel,                                                                          \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,               \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,          \
     void** extra),                                                                                          \
    required)                                                                                                \
  X(cuLaunchKernelEx, cuLaunchKernelEx,                                                                      \
    (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra), optional)          \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                                         \
    (CUgraphExec * exec, CUgraph graph, unsigned long long flags), optional)                                 \
  X(cuGraphLaunch, cuGraphLaunch, (CUgraphExec exec, CUstream stream), optional)                             \
  X(cuGraphExecUpdate, cuGraphExecUpdate_v2,                                                                 \
    (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo * info), optional)                         \
  X(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec), optional)                                    \
  X(cuGraphDestroy, cuGraphDestroy, (CUgraph graph), optional)                                               \
  X(cuGraphGetNodes, cuGraphGetNodes, (CUgraph graph, CUgraphNode * nodes, std::size_t * count), optional)

// The functions of one driver. A member is null if the library lacks it, which what opens it accepts of
// optional ones.
struct CudaDriver {
#define REWIRE_CUDA_ROW(name, symbol, parameters, need) CUresult(*name) parameters = nullptr;
  REWIRE_CUDA_FUNCTIONS(REWIRE_CUDA_ROW)  // NOLINT(readability-identifier-naming)
#undef REWIRE_CUDA_ROW
};

}  // namespace rewire::cuda
