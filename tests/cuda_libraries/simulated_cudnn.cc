// SPDX-License-Identifier: Apache-2.0
// A simulation of cuDNN: the functions that Rewire calls, which compute by kernels of the simulated driver.
#include <algorithm>
#include <cstring>

#include "rewire/kernels/cuda_libraries/cudnn_abi.h"
#include "rewire/tests/cuda_libraries/parameters.h"
#include "rewire/tests/cuda_libraries/simulated_library.h"

namespace {

namespace abi = rewire::kernel::cuda_libraries;
using namespace rewire::simulated_libraries;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kWorkspace = 1024;

struct Handle {
  void* module;
  void* stream = nullptr;
};
struct Shape {
  int type = -1, rank = 0;
  int dims[5] = {};
};
struct Window {
  int spatial = 0, groups = 1, math = 0;
  int pads[3] = {}, strides[3] = {}, dilations[3] = {};
};

template <typename T>
int Make(const char* function, void** made) {
  if (const int status = Begin(function); status != 0) return status;
  *made = new T();
  CountLive(1);
  return 0;
}
template <typename T>
int Drop(const char* function, void* object) {
  Begin(function);
  delete static_cast<T*>(object);
  CountLive(-1);
  return 0;
}

int SetShape(const char* function, void* object, int type, int rank, const int* dims) {
  if (const int status = Begin(function); status != 0) return status;
  // As the library has it: images of two axes at least.
  if (rank < 4 || rank > 5) return kFailed;
  auto* shape = static_cast<Shape*>(object);
  shape->type = type;
  shape->rank = rank;
  std::copy_n(dims, rank, shape->dims);
  return 0;
}

// The parameters of a convolution whose shapes fit.
bool Parameters(const Shape& x, const Shape& w, const Window& window, const Shape& y,
                ConvolutionParameters* p) {
  const bool alike = x.rank == w.rank && x.rank == y.rank && window.spatial == x.rank - 2 &&
                     x.type == w.type && x.type == y.type;
  if (!alike || x.dims[1] != w.dims[1] * window.groups || y.dims[1] != w.dims[0] || y.dims[0] != x.dims[0] ||
      y.dims[1] % window.groups != 0)
    return false;
  *p = {};
  p->half = x.type == abi::kCudnnHalf ? 1 : 0;
  p->groups = window.groups;
  p->images = x.dims[0];
  p->channels = w.dims[1];
  p->outputs = y.dims[1];
  for (int i = 0; i < 3; ++i) p->x[i] = p->w[i] = p->y[i] = p->strides[i] = p->dilations[i] = 1;
  for (int i = 0; i < window.spatial; ++i) {
    const int axis = 3 - window.spatial + i;
    p->x[axis] = x.dims[2 + i];
    p->w[axis] = w.dims[2 + i];
    p->y[axis] = y.dims[2 + i];
    p->pads[axis] = window.pads[i];
    p->strides[axis] = window.strides[i];
    p->dilations[axis] = window.dilations[i];
    const int room = p->x[axis] + 2 * p->pads[axis] - ((p->w[axis] - 1) * p->dilations[axis] + 1);
    if (room < 0 || 1 + room / p->strides[axis] != p->y[axis]) return false;
  }
  return true;
}

}  // namespace

REWIRE_SIMULATED_EXPORT std::size_t cudnnGetVersion() { return 90100; }

REWIRE_SIMULATED_EXPORT int cudnnCreate(void** handle) {
  if (const int status = Begin("cudnnCreate"); status != 0) return status;
  void* module = LoadKernels();
  if (module == nullptr) return kFailed;
  *handle = new Handle{module};
  CountLive(1);
  return 0;
}
REWIRE_SIMULATED_EXPORT int cudnnDestroy(void* handle) {
  UnloadKernels(static_cast<Handle*>(handle)->module);
  return Drop<Handle>("cudnnDestroy", handle);
}
REWIRE_SIMULATED_EXPORT int cudnnSetStream(void* handle, void* stream) {
  if (const int status = Begin("cudnnSetStream"); status != 0) return status;
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}

REWIRE_SIMULATED_EXPORT int cudnnCreateTensorDescriptor(void** tensor) {
  return Make<Shape>("cudnnCreateTensorDescriptor", tensor);
}
REWIRE_SIMULATED_EXPORT int cudnnDestroyTensorDescriptor(void* tensor) {
  return Drop<Shape>("cudnnDestroyTensorDescriptor", tensor);
}
REWIRE_SIMULATED_EXPORT int cudnnSetTensorNdDescriptor(void* tensor, int type, int rank, const int* dims,
                                                       const int* strides) {
  int stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (strides[i] != stride) return kFailed;
    stride *= dims[i];
  }
  return SetShape("cudnnSetTensorNdDescriptor", tensor, type, rank, dims);
}
REWIRE_SIMULATED_EXPORT int cudnnCreateFilterDescriptor(void** filter) {
  return Make<Shape>("cudnnCreateFilterDescriptor", filter);
}
REWIRE_SIMULATED_EXPORT int cudnnDestroyFilterDescriptor(void* filter) {
  return Drop<Shape>("cudnnDestroyFilterDescriptor", filter);
}
REWIRE_SIMULATED_EXPORT int cudnnSetFilterNdDescriptor(void* filter, int type, int format, int rank,
                                                       const int* dims) {
  if (format != abi::kCudnnChannelsFirst) return kFailed;
  return SetShape("cudnnSetFilterNdDescriptor", filter, type, rank, dims);
}
REWIRE_SIMULATED_EXPORT int cudnnCreateConvolutionDescriptor(void** convolution) {
  return Make<Window>("cudnnCreateConvolutionDescriptor", convolution);
}
REWIRE_SIMULATED_EXPORT int cudnnDestroyConvolutionDescriptor(void* convolution) {
  return Drop<Window>("cudnnDestroyConvolutionDescriptor", convolution);
}
REWIRE_SIMULATED_EXPORT int cudnnSetConvolutionNdDescriptor(void* convolution, int spatial, const int* pads,
                                                            const int* strides, const int* dilations,
                                                            int mode, int compute) {
  if (const int status = Begin("cudnnSetConvolutionNdDescriptor"); status != 0) return status;
  if (spatial < 2 || spatial > 3 || mode != abi::kCudnnCrossCorrelation || compute != abi::kCudnnFloat)
    return kFailed;
  auto* window = static_cast<Window*>(convolution);
  window->spatial = spatial;
  std::copy_n(pads, spatial, window->pads);
  std::copy_n(strides, spatial, window->strides);
  std::copy_n(dilations, spatial, window->dilations);
  return 0;
}
REWIRE_SIMULATED_EXPORT int cudnnSetConvolutionGroupCount(void* convolution, int groups) {
  if (const int status = Begin("cudnnSetConvolutionGroupCount"); status != 0) return status;
  static_cast<Window*>(convolution)->groups = groups;
  return 0;
}
REWIRE_SIMULATED_EXPORT int cudnnSetConvolutionMathType(void* convolution, int math) {
  if (const int status = Begin("cudnnSetConvolutionMathType"); status != 0) return status;
  static_cast<Window*>(convolution)->math = math;
  return 0;
}

// The first algorithm is one that does not work, the second rounds f32, the third is good.
REWIRE_SIMULATED_EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void* convolution,
                                                                   void*, int requested, int* found,
                                                                   abi::ConvolutionHeuristic* results) {
  *found = 0;
  if (const int status = Begin("cudnnGetConvolutionForwardAlgorithm_v7"); status != 0) return status;
  for (; *found < requested && *found < 3; ++*found) results[*found] = {};
  results[0].status = kFailed;
  results[1].algorithm = 1;
  results[1].math = abi::kCudnnTensorMath;
  results[2].algorithm = 2;
  results[2].math = static_cast<Window*>(convolution)->math;
  return 0;
}
REWIRE_SIMULATED_EXPORT int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int,
                                                                    std::size_t* bytes) {
  if (const int status = Begin("cudnnGetConvolutionForwardWorkspaceSize"); status != 0) return status;
  *bytes = kWorkspace;
  return 0;
}

REWIRE_SIMULATED_EXPORT int cudnnConvolutionForward(void* handle, const void* alpha, void* x_layout,
                                                    const void* x, void* w_layout, const void* w,
                                                    void* convolution, int algorithm, void* workspace,
                                                    std::size_t workspace_bytes, const void* beta,
                                                    void* y_layout, void* y) {
  if (const int status = Begin("cudnnConvolutionForward"); status != 0) return status;
  const auto& shape = *static_cast<Shape*>(y_layout);
  const auto& window = *static_cast<Window*>(convolution);
  ConvolutionParameters p;
  if (!Parameters(*static_cast<Shape*>(x_layout), *static_cast<Shape*>(w_layout), window, shape, &p) ||
      workspace_bytes < kWorkspace || algorithm == 0 || (p.half == 0 && window.math != abi::kCudnnFusedMath))
    return kFailed;
  std::memcpy(&p.alpha, alpha, sizeof(float));
  std::memcpy(&p.beta, beta, sizeof(float));
  std::int64_t threads = 1;
  for (int i = 0; i < shape.rank; ++i) threads *= shape.dims[i];
  void* parameters[] = {&x, &w, &y, &workspace, &p};
  const auto* given = static_cast<Handle*>(handle);
  return LaunchKernel(given->module, "simulated_convolution", threads, parameters, given->stream) ? 0
                                                                                                  : kFailed;
}

REWIRE_SIMULATED_EXPORT int cudnnAddTensor(void* handle, const void* alpha, void* a_layout, const void* a,
                                           const void* beta, void* c_layout, void* c) {
  if (const int status = Begin("cudnnAddTensor"); status != 0) return status;
  const auto &bias = *static_cast<Shape*>(a_layout), &y = *static_cast<Shape*>(c_layout);
  int inner = 1;
  for (int i = 2; i < y.rank; ++i) {
    inner *= y.dims[i];
    if (bias.dims[i] != 1) return kFailed;
  }
  if (bias.rank != y.rank || bias.dims[0] != 1 || bias.dims[1] != y.dims[1] || bias.type != y.type)
    return kFailed;
  int half = y.type == abi::kCudnnHalf ? 1 : 0, channels = y.dims[1], count = y.dims[0] * channels * inner;
  float scale = 0, keep = 0;
  std::memcpy(&scale, alpha, sizeof(float));
  std::memcpy(&keep, beta, sizeof(float));
  void* parameters[] = {&a, &c, &half, &channels, &inner, &count, &scale, &keep};
  const auto* given = static_cast<Handle*>(handle);
  return LaunchKernel(given->module, "simulated_add_channels", count, parameters, given->stream) ? 0
                                                                                                 : kFailed;
}
