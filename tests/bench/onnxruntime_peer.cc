// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime as a peer, through its C API, with inputs and outputs bound, which is its fastest way.
#include <stdexcept>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/tests/bench/onnxruntime_api.h"
#include "rewire/tests/bench/peer.h"

namespace rewire::bench {
namespace {

// ONNX's number of an element type.
int ElementType(DLDataType dtype) {
  constexpr struct {
    DLDataType dtype;
    int number;
  } kTypes[] = {{kFloat32, 1},
                {kUInt8, 2},
                {kInt8, 3},
                {MakeDType(kUInt, 16), 4},
                {MakeDType(kInt, 16), 5},
                {kInt32, 6},
                {kInt64, 7},
                {kBool8, 9},
                {kFloat16, 10},
                {kFloat64, 11},
                {MakeDType(kUInt, 32), 12},
                {MakeDType(kUInt, 64), 13}};
  for (const auto& type : kTypes) {
    if (dtype == type.dtype) return type.number;
  }
  throw std::runtime_error("an element type that ONNX has no number for");
}

class OnnxRuntimePeer : public Peer {
 public:
  explicit OnnxRuntimePeer(const PeerSettings& settings)
      : runtime_(settings.library), info_(runtime_.MakeHostMemoryInfo()) {
    const int optimization =
        settings.setting == "all" ? OnnxRuntime::kAllOptimizations : OnnxRuntime::kNoOptimization;
    session_ = runtime_.MakeSession(runtime_.MakeEnv(), settings.model,
                                    runtime_.MakeOptions(settings.threads, optimization));
    binding_ = runtime_.MakeBinding(session_);
  }
  void Bind(const NamedTensors& inputs, const NamedTensors& outputs) override {
    for (const auto& [name, tensor] : inputs) runtime_.BindInput(binding_, name, Over(tensor));
    for (const auto& [name, tensor] : outputs) runtime_.BindOutput(binding_, name, Over(tensor));
  }
  void Run() override { runtime_.Run(session_, binding_); }

 private:
  OnnxRuntime::Tensor* Over(const HostTensor& tensor) const {
    auto* data = const_cast<std::byte*>(tensor.bytes.view.data());
    return runtime_.MakeTensor(info_, data, tensor.bytes.view.size(), tensor.shape.data(),
                               tensor.shape.size(), ElementType(tensor.dtype));
  }

  OnnxRuntime runtime_;
  OnnxRuntime::MemoryInfo* info_;
  OnnxRuntime::Session* session_ = nullptr;
  OnnxRuntime::Binding* binding_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> LoadOnnxRuntime(const PeerSettings& settings) {
  return std::make_unique<OnnxRuntimePeer>(settings);
}

}  // namespace rewire::bench
