// SPDX-License-Identifier: Apache-2.0
//
// The part of cuDNN's binary interface that Rewire calls: the convolutions that versions 8 and 9 share.
// tests/cuda_libraries compares it with NVIDIA's headers where they are.
#pragma once

#include <cstddef>

namespace rewire::kernel::cuda_libraries {

// cudnnStatus_t: 0 is success.
using CudnnStatus = int;
inline constexpr CudnnStatus kCudnnSuccess = 0;

// X(name, value, NVIDIA's name)
#define REWIRE_CUDNN_VALUES(X)                          \
  X(kCudnnFloat, 0, CUDNN_DATA_FLOAT)                   \
  X(kCudnnHalf, 2, CUDNN_DATA_HALF)                     \
  X(kCudnnChannelsFirst, 0, CUDNN_TENSOR_NCHW)          \
  X(kCudnnCrossCorrelation, 1, CUDNN_CROSS_CORRELATION) \
  X(kCudnnTensorMath, 1, CUDNN_TENSOR_OP_MATH)          \
  X(kCudnnFusedMath, 3, CUDNN_FMA_MATH)

#define REWIRE_CUDNN_VALUE(name, value, theirs) inline constexpr int name = value;
REWIRE_CUDNN_VALUES(REWIRE_CUDNN_VALUE)
#undef REWIRE_CUDNN_VALUE

// cudnnConvolutionFwdAlgoPerf_t
struct ConvolutionHeuristic {
  int algorithm;
  CudnnStatus status;
  float time;
  std::size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};

// Handles and descriptors are pointers. X(name, parameters)
#define REWIRE_CUDNN_FUNCTIONS(X)                                                                          \
  X(cudnnCreate, (void** handle))                                                                          \
  X(cudnnDestroy, (void* handle))                                                                          \
  X(cudnnSetStream, (void* handle, void* stream))                                                          \
  X(cudnnCreateTensorDescriptor, (void** tensor))                                                          \
  X(cudnnDestroyTensorDescriptor, (void* tensor))                                                          \
  X(cudnnSetTensorNdDescriptor, (void* tensor, int type, int rank, const int* dims, const int* strides))   \
  X(cudnnCreateFilterDescriptor, (void** filter))                                                          \
  X(cudnnDestroyFilterDescriptor, (void* filter))                                                          \
  X(cudnnSetFilterNdDescriptor, (void* filter, int type, int format, int rank, const int* dims))           \
  X(cudnnCreateConvolutionDescriptor, (void** convolution))                                                \
  X(cudnnDestroyConvolutionDescriptor, (void* convolution))                                                \
  X(cudnnSetConvolutionNdDescriptor, (void* convolution, int spatial, const int* pads, const int* strides, \
                                      const int* dilations, int mode, int compute))                        \
  X(cudnnSetConvolutionGroupCount, (void* convolution, int groups))                                        \
  X(cudnnSetConvolutionMathType, (void* convolution, int math))                                            \
  X(cudnnGetConvolutionForwardAlgorithm_v7, (void* handle, void* x, void* w, void* convolution, void* y,   \
                                             int requested, int* found, ConvolutionHeuristic* results))    \
  X(cudnnGetConvolutionForwardWorkspaceSize,                                                               \
    (void* handle, void* x, void* w, void* convolution, void* y, int algorithm, std::size_t* bytes))       \
  X(cudnnConvolutionForward,                                                                               \
    (void* handle, const void* alpha, void* x_layout, const void* x, void* w_layout, const void* w,        \
     void* convolution, int algorithm, void* workspace, std::size_t workspace_bytes, const void* beta,     \
     void* y_layout, void* y))                                                                             \
  X(cudnnAddTensor, (void* handle, const void* alpha, void* a_layout, const void* a, const void* beta,     \
                     void* c_layout, void* c))

struct CudnnFunctions {
#define REWIRE_CUDNN_MEMBER(name, parameters) CudnnStatus(*name) parameters = nullptr;
  REWIRE_CUDNN_FUNCTIONS(REWIRE_CUDNN_MEMBER)  // NOLINT(readability-identifier-naming)
#undef REWIRE_CUDNN_MEMBER
  std::size_t (*cudnnGetVersion)() = nullptr;  // NOLINT(readability-identifier-naming)
};

}  // namespace rewire::kernel::cuda_libraries
