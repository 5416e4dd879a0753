// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cuda_libraries/convolution.h"

#include <memory>

#include "rewire/kernels/cuda_libraries/context.h"
#include "rewire/kernels/cuda_libraries/session.h"
#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::cuda_libraries {
namespace {

struct ConvolutionPlan {
  struct Key {
    Convolution convolution;
    bool half;
    bool has_bias;
    bool operator==(const Key&) const = default;
  };
  explicit ConvolutionPlan(const Key& given) : key(given) {}
  ~ConvolutionPlan() {
    const CudnnFunctions& library = *Cudnn();
    for (void* tensor : {x, y, bias}) {
      if (tensor != nullptr) library.cudnnDestroyTensorDescriptor(tensor);
    }
    if (w != nullptr) library.cudnnDestroyFilterDescriptor(w);
    if (convolution != nullptr) library.cudnnDestroyConvolutionDescriptor(convolution);
  }
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;

  Key key;
  bool usable = false;  // false: the convolution is not for cuDNN
  void *x = nullptr, *w = nullptr, *y = nullptr, *bias = nullptr, *convolution = nullptr;
  int algorithm = 0;
  std::size_t workspace_bytes = 0;
};

bool CudnnOk(CudnnStatus status) { return status == kCudnnSuccess; }

bool MakeTensor(int type, int rank, const std::int32_t* dims, void** tensor) {
  int strides[2 + Convolution::kMostSpatial];
  int stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return CudnnOk(Cudnn()->cudnnCreateTensorDescriptor(tensor)) &&
         CudnnOk(Cudnn()->cudnnSetTensorNdDescriptor(*tensor, type, rank, dims, strides));
}

bool Describe(ConvolutionPlan* plan) {
  const CudnnFunctions& library = *Cudnn();
  const Convolution& convolution = plan->key.convolution;
  const int type = plan->key.half ? kCudnnHalf : kCudnnFloat;
  const int rank = 2 + convolution.spatial;
  // f32 stays f32: the other kinds of arithmetic round its products to fewer bits.
  const int math = plan->key.half ? kCudnnTensorMath : kCudnnFusedMath;
  std::int32_t bias[2 + Convolution::kMostSpatial] = {1, convolution.y[1], 1, 1, 1};
  return MakeTensor(type, rank, convolution.x, &plan->x) && MakeTensor(type, rank, convolution.y, &plan->y) &&
         (!plan->key.has_bias || MakeTensor(type, rank, bias, &plan->bias)) &&
         CudnnOk(library.cudnnCreateFilterDescriptor(&plan->w)) &&
         CudnnOk(
             library.cudnnSetFilterNdDescriptor(plan->w, type, kCudnnChannelsFirst, rank, convolution.w)) &&
         CudnnOk(library.cudnnCreateConvolutionDescriptor(&plan->convolution)) &&
         CudnnOk(library.cudnnSetConvolutionNdDescriptor(
             plan->convolution, convolution.spatial, convolution.pads, convolution.strides,
             convolution.dilations, kCudnnCrossCorrelation, kCudnnFloat)) &&
         CudnnOk(library.cudnnSetConvolutionGroupCount(plan->convolution, convolution.groups)) &&
         CudnnOk(library.cudnnSetConvolutionMathType(plan->convolution, math));
}

// The first of the algorithms, the quickest by cuDNN's guess first, that works with the memory we give it.
bool Choose(ConvolutionPlan* plan, void* handle) {
  constexpr int kMost = 8;
  const CudnnFunctions& library = *Cudnn();
  ConvolutionHeuristic results[kMost] = {};
  int found = 0;
  if (!CudnnOk(library.cudnnGetConvolutionForwardAlgorithm_v7(handle, plan->x, plan->w, plan->convolution,
                                                              plan->y, kMost, &found, results)))
    return false;
  const int math = plan->key.half ? kCudnnTensorMath : kCudnnFusedMath;
  for (int i = 0; i < found && i < kMost; ++i) {
    // An algorithm may be listed once for each kind of arithmetic.
    if (!CudnnOk(results[i].status) || (!plan->key.half && results[i].math == kCudnnTensorMath)) continue;
    plan->algorithm = results[i].algorithm;
    if (CudnnOk(library.cudnnSetConvolutionMathType(plan->convolution,
                                                    plan->key.half ? results[i].math : math)) &&
        CudnnOk(library.cudnnGetConvolutionForwardWorkspaceSize(
            handle, plan->x, plan->w, plan->convolution, plan->y, plan->algorithm, &plan->workspace_bytes)) &&
        plan->workspace_bytes <= kWorkspaceBytes)
      return true;
  }
  return false;
}

}  // namespace

Status Convolve(const Convolution& convolution, TensorView x, TensorView w,
                const std::optional<TensorView>& bias, TensorView y, bool* done) {
  const CudnnFunctions* library = Cudnn();
  if (library == nullptr) return Status();
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (__rewire_kernel_api->device(y.device(), &api, &stream) != 0) return Status::AlreadySet();
  auto* session = Session<ConvolutionPlan>::OfThisKernel();
  const EnteredContext context(y.device().device_id);
  if (session == nullptr || !context) return Status();
  Handles& handles = session->Enter(y.device().device_id, stream);
  const std::lock_guard<std::mutex> lock(handles.mutex());
  void* handle = handles.cudnn();
  if (handle == nullptr) return Status();
  const ConvolutionPlan::Key key{convolution, y.dtype().bits == 16, bias.has_value()};
  ConvolutionPlan* plan = session->Find(key);
  if (plan == nullptr) {
    auto made = std::make_unique<ConvolutionPlan>(key);
    made->usable = Describe(made.get()) && Choose(made.get(), handle);
    plan = session->Keep(std::move(made));
  }
  if (!plan->usable) return Status();
  device::Scratch workspace;
  if (plan->workspace_bytes != 0) {
    if (Status s = workspace.Make(y, DTypeOf<std::uint8_t>(), kWorkspaceBytes); !s.ok()) return s;
  }
  const float one = 1, zero = 0;
  void* scratch = plan->workspace_bytes != 0 ? workspace.view().raw_data() : nullptr;
  CudnnStatus status = library->cudnnConvolutionForward(
      handle, &one, plan->x, x.raw_data(), plan->w, w.raw_data(), plan->convolution, plan->algorithm, scratch,
      plan->workspace_bytes, &zero, plan->y, y.raw_data());
  if (!CudnnOk(status)) return RuntimeError("cudnnConvolutionForward fails with status ", status);
  if (bias) {
    status = library->cudnnAddTensor(handle, &one, plan->bias, bias->raw_data(), &one, plan->y, y.raw_data());
    if (!CudnnOk(status)) return RuntimeError("cudnnAddTensor fails with status ", status);
  }
  *done = true;
  return Status();
}

}  // namespace rewire::kernel::cuda_libraries
