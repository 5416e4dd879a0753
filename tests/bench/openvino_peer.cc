// SPDX-License-Identifier: Apache-2.0
// OpenVINO as a peer, through its C API: the latency hint, one stream, static shapes if asked, inputs and
// outputs in the caller's memory. Its Python package has the library; the functions are declared here.
#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/tests/bench/peer.h"

namespace rewire::bench {
namespace {

// The library's types, as openvino/c declares them. Objects are seen as pointers alone.
struct Core;
struct Model;
struct CompiledModel;
struct Request;
struct OpenVinoTensor;
struct Dimension {
  std::int64_t least;
  std::int64_t most;
};
struct PartialShape {
  Dimension rank;
  Dimension* dims;
};
struct StaticShape {
  std::int64_t rank;
  std::int64_t* dims;
};

// ov_element_type_e
std::uint32_t ElementCode(DLDataType dtype) {
  constexpr struct {
    DLDataType dtype;
    std::uint32_t number;
  } kTypes[] = {{kBool8, 1},
                {kFloat16, 3},
                {kFloat32, 4},
                {kFloat64, 5},
                {kInt8, 7},
                {MakeDType(kInt, 16), 8},
                {kInt32, 9},
                {kInt64, 10},
                {kUInt8, 16},
                {MakeDType(kUInt, 16), 17},
                {MakeDType(kUInt, 32), 18},
                {MakeDType(kUInt, 64), 19}};
  for (const auto& type : kTypes) {
    if (dtype == type.dtype) return type.number;
  }
  throw std::runtime_error("an element type that OpenVINO has no number for");
}

class OpenVinoPeer : public Peer {
 public:
  OpenVinoPeer(const PeerSettings& settings, const NamedTensors& inputs)
      : library_(dlopen(settings.library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    Core* core = nullptr;
    Call<Core**>("ov_core_create", &core);
    Model* model = nullptr;
    Call<const Core*, const char*, const char*, Model**>("ov_core_read_model", core, settings.model.c_str(),
                                                         nullptr, &model);
    if (settings.setting.find("-dynamic") == std::string::npos) Reshape(model, inputs);
    const std::string precision = settings.setting.substr(0, settings.setting.find('-'));
    const std::string threads = std::to_string(settings.threads);
    CompiledModel* compiled = nullptr;
    // Pairs of a property and its value, as many as the count of words says.
    const auto compile =
        Function<int (*)(const Core*, const Model*, const char*, std::size_t, CompiledModel**, ...)>(
            "ov_core_compile_model");
    Check(compile(core, model, "CPU", 10, &compiled, "PERFORMANCE_HINT", "LATENCY", "NUM_STREAMS", "1",
                  "INFERENCE_NUM_THREADS", threads.c_str(), "INFERENCE_PRECISION_HINT", precision.c_str(),
                  "ENABLE_CPU_PINNING", "NO"));
    Call<const CompiledModel*, Request**>("ov_compiled_model_create_infer_request", compiled, &request_);
    infer_ = Function<int (*)(Request*)>("ov_infer_request_infer");
  }
  void Bind(const NamedTensors& inputs, const NamedTensors& outputs) override {
    for (const NamedTensors* tensors : {&inputs, &outputs}) {
      for (const auto& [name, tensor] : *tensors) {
        Call<Request*, const char*, const OpenVinoTensor*>("ov_infer_request_set_tensor", request_,
                                                           name.c_str(), Over(tensor));
      }
    }
  }
  void Run() override { Check(infer_(request_)); }

 private:
  void Reshape(Model* model, const NamedTensors& inputs) {
    std::vector<std::vector<Dimension>> dims;
    std::vector<PartialShape> shapes;
    std::vector<const char*> names;
    for (const auto& [name, tensor] : inputs) {
      names.push_back(name.c_str());
      dims.emplace_back();
      for (const std::int64_t dim : tensor.shape) dims.back().push_back({dim, dim});
      const auto rank = static_cast<std::int64_t>(tensor.shape.size());
      shapes.push_back({{rank, rank}, dims.back().data()});
    }
    Call<const Model*, const char**, const PartialShape*, std::size_t>(
        "ov_model_reshape", model, names.data(), shapes.data(), names.size());
  }
  const OpenVinoTensor* Over(const HostTensor& tensor) {
    std::vector<std::int64_t> dims = tensor.shape;
    OpenVinoTensor* made = nullptr;
    auto* data = const_cast<std::byte*>(tensor.bytes.view.data());
    Call<std::uint32_t, StaticShape, void*, OpenVinoTensor**>(
        "ov_tensor_create_from_host_ptr", ElementCode(tensor.dtype),
        StaticShape{static_cast<std::int64_t>(dims.size()), dims.data()}, data, &made);
    return made;
  }

  template <typename F>
  F Function(const char* name) const {
    void* symbol = dlsym(library_, name);
    if (symbol == nullptr) throw std::runtime_error(std::string("OpenVINO's library has no ") + name);
    return reinterpret_cast<F>(symbol);
  }
  template <typename... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    Check(Function<int (*)(Arguments...)>(name)(arguments...));
  }
  void Check(int status) const {
    if (status != 0) throw std::runtime_error(Function<const char* (*)()>("ov_get_last_err_msg")());
  }

  void* library_;
  Request* request_ = nullptr;
  int (*infer_)(Request*) = nullptr;
};

}  // namespace

std::unique_ptr<Peer> LoadOpenVino(const PeerSettings& settings, const NamedTensors& inputs) {
  return std::make_unique<OpenVinoPeer>(settings, inputs);
}

}  // namespace rewire::bench
