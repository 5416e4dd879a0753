// SPDX-License-Identifier: Apache-2.0
// Images that layers make with the channels last and that only a transpose reads: each order of the axes,
// behind each kind of layer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "rewire/executable_format/executable.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kChannels = 4;

// The sizes of an image [2, 4, spatial...].
Ints ImageDims(int axes) {
  const Ints spatial = {6, 4, 5};
  Ints dims = {2, kChannels};
  dims.insert(dims.end(), spatial.begin(), spatial.begin() + axes);
  return dims;
}

// Adds the nodes of one chain. Their names begin with `name`.
class Chain {
 public:
  Chain(onnx::GraphProto* graph, std::string name, int axes)
      : graph_(graph), name_(std::move(name)), axes_(axes) {}

  int axes() const { return axes_; }

  onnx::NodeProto* Add(const std::string& type, std::vector<std::string> inputs) {
    last_ = name_ + "." + std::to_string(count_++);
    return AddNode(graph_, type, inputs, last_);
  }
  const std::string& last() const { return last_; }

  std::string Weight(const Ints& dims) {
    const std::int64_t count =
        std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
    std::string name = name_ + ".w" + std::to_string(count_++);
    AddFloats(graph_, name, dims, Numbers(count));
    return name;
  }
  std::string Scalar(onnx::TensorProto::DataType type, float value) {
    std::string name = name_ + ".s" + std::to_string(count_++);
    onnx::TensorProto* tensor = AddWeight(graph_, name, type, {});
    if (type == onnx::TensorProto::FLOAT) tensor->add_float_data(value);
    if (type != onnx::TensorProto::FLOAT) tensor->add_int32_data(static_cast<std::int32_t>(value));
    return name;
  }
  std::string Bytes(const Ints& dims) {
    std::string name = name_ + ".b" + std::to_string(count_++);
    onnx::TensorProto* tensor = AddWeight(graph_, name, onnx::TensorProto::INT8, dims);
    const std::int64_t count =
        std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t i = 0; i < count; ++i) tensor->add_int32_data(static_cast<std::int32_t>(i % 9 - 4));
    return name;
  }

  // Weights [out, in, 3...] or, with `size` 1, [out, in, 1...].
  Ints WeightDims(std::int64_t out, std::int64_t in, std::int64_t size) const {
    Ints dims(static_cast<std::size_t>(axes_) + 2, size);
    dims[0] = out;
    dims[1] = in;
    return dims;
  }
  Ints Twice(std::int64_t value) const { return Ints(2 * static_cast<std::size_t>(axes_), value); }

  void Conv(const std::string& x, std::int64_t groups = 1, std::int64_t size = 3) {
    const std::string w = Weight(WeightDims(kChannels, kChannels / groups, size));
    onnx::NodeProto* node = Add("Conv", {x, w});
    AddInt(node, "group", groups);
    AddIntList(node, "pads", Twice(size / 2));
  }

 private:
  onnx::GraphProto* graph_;
  std::string name_;
  int axes_;
  int count_ = 0;
  std::string last_;
};

struct Layer {
  const char* name;
  void (*add)(Chain* chain);
  int most_axes = 3;
};

const std::vector<Layer>& Layers() {
  static const std::vector<Layer> kLayers = {
      {"Conv", [](Chain* chain) { chain->Conv("x"); }},
      {"Conv by one pixel", [](Chain* chain) { chain->Conv("x", 1, 1); }},
      {"depthwise Conv", [](Chain* chain) { chain->Conv("x", kChannels); }},
      {"Conv of groups", [](Chain* chain) { chain->Conv("x", 2); }},
      {"ConvTranspose",
       [](Chain* chain) {
         const std::string w = chain->Weight(chain->WeightDims(kChannels, 3, 2));
         AddIntList(chain->Add("ConvTranspose", {"x", w}), "strides",
                    Ints(static_cast<std::size_t>(chain->axes()), 2));
       }},
      {"Relu",
       [](Chain* chain) {
         chain->Conv("x");
         chain->Add("Relu", {chain->last()});
       }},
      {"MaxPool",
       [](Chain* chain) {
         chain->Conv("x");
         AddIntList(chain->Add("MaxPool", {chain->last()}), "kernel_shape",
                    Ints(static_cast<std::size_t>(chain->axes()), 2));
       }},
      {"Concat",
       [](Chain* chain) {
         chain->Conv("x");
         const std::string first = chain->last();
         chain->Conv("x", 1, 1);
         AddInt(chain->Add("Concat", {first, chain->last()}), "axis", 1);
       }},
      {"Resize",
       [](Chain* chain) {
         chain->Conv("x");
         const std::string x = chain->last();
         chain->Add("Resize", {x, "", "scales"});
       },
       2},
      {"two Convs",
       [](Chain* chain) {
         chain->Conv("x");
         chain->Conv(chain->last(), 1, 1);
       }},
      {"QLinearConv",
       [](Chain* chain) {
         const std::string scale = chain->Scalar(onnx::TensorProto::FLOAT, 0.5F);
         const std::string zero = chain->Scalar(onnx::TensorProto::UINT8, 3);
         const std::string one = chain->Scalar(onnx::TensorProto::INT8, 0);
         chain->Add("QuantizeLinear", {"x", scale, zero});
         const std::string x = chain->last();
         const std::string w = chain->Bytes(chain->WeightDims(kChannels, kChannels, 3));
         AddIntList(chain->Add("QLinearConv", {x, scale, zero, w, scale, one, scale, zero}), "pads",
                    chain->Twice(1));
         chain->Add("DequantizeLinear", {chain->last(), scale, zero});
       }},
      {"Conv of dequantized integers",
       [](Chain* chain) {
         const std::string scale = chain->Scalar(onnx::TensorProto::FLOAT, 0.5F);
         const std::string zero = chain->Scalar(onnx::TensorProto::UINT8, 3);
         const std::string one = chain->Scalar(onnx::TensorProto::INT8, 0);
         chain->Add("QuantizeLinear", {"x", scale, zero});
         chain->Add("DequantizeLinear", {chain->last(), scale, zero});
         const std::string x = chain->last();
         chain->Add("DequantizeLinear",
                    {chain->Bytes(chain->WeightDims(kChannels, kChannels, 1)), scale, one});
         chain->Add("Conv", {x, chain->last()});
         chain->Add("QuantizeLinear", {chain->last(), scale, zero});
         chain->Add("DequantizeLinear", {chain->last(), scale, zero});
       }},
  };
  return kLayers;
}

std::vector<Ints> Permutations(int rank) {
  Ints perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::vector<Ints> all;
  do all.push_back(perm);
  while (std::next_permutation(perm.begin(), perm.end()));
  return all;
}

// A chain for each order: the layer, its transpose, and by turns nothing more, an operator or the way back.
onnx::ModelProto ModelOfOrders(const Layer& layer, int axes, bool open) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<Dim> dims;
  for (const std::int64_t dim : ImageDims(axes)) dims.emplace_back(dim);
  if (open) dims[0] = "N";
  SetValue(graph->add_input(), "x", dims);
  std::vector<float> scales(static_cast<std::size_t>(axes) + 2, 2);
  scales[0] = scales[1] = 1;
  AddFloats(graph, "scales", {axes + 2}, scales);
  const std::vector<Ints> orders = Permutations(axes + 2);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    Chain chain(graph, "c" + std::to_string(i), axes);
    layer.add(&chain);
    AddIntList(chain.Add("Transpose", {chain.last()}), "perm", orders[i]);
    if (i % 3 == 1) chain.Add("Neg", {chain.last()});
    if (i % 3 == 2) {
      Ints back(orders[i].size());
      for (std::size_t k = 0; k < back.size(); ++k)
        back[static_cast<std::size_t>(orders[i][k])] = static_cast<std::int64_t>(k);
      chain.Add("Abs", {chain.last()});
      AddIntList(chain.Add("Transpose", {chain.last()}), "perm", back);
    }
    SetValue(graph->add_output(), chain.last(), {});
  }
  return model;
}

std::vector<Tensor> OutputsOf(const onnx::ModelProto& model, const Ints& shape, bool passes) {
  compiler::CompileOptions options;
  for (const std::string& pass : compiler::PassNames()) {
    if (!passes) options.disabled_passes.insert(pass);
  }
  Outcome outcome = CompileProto(model, options);
  INFO(outcome.message);
  REQUIRE(outcome.message.empty());
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  INFO(executable.error().message());
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  std::vector<float> x(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 23) - 11;
  VirtualMachine vm(*program);
  REQUIRE(vm.TrySetInput("x", TensorView(x.data(), DTypeOf<float>(), shape)));
  REQUIRE(vm.TryInvoke());
  std::vector<Tensor> outputs;
  for (int i = 0; i < model.graph().output_size(); ++i)
    outputs.push_back(vm.result().field(static_cast<std::uint32_t>(i)).tensor());
  return outputs;
}

TEST_CASE("channels-last: each order of the axes behind each layer") {
  for (const Layer& layer : Layers()) {
    for (int axes = 1; axes <= layer.most_axes; ++axes) {
      for (const bool open : {false, true}) {
        INFO(layer.name << " of " << axes << " spatial axes" << (open ? ", open batch" : ""));
        const onnx::ModelProto model = ModelOfOrders(layer, axes, open);
        const std::vector<Tensor> given = OutputsOf(model, ImageDims(axes), true);
        const std::vector<Tensor> expected = OutputsOf(model, ImageDims(axes), false);
        REQUIRE(given.size() == expected.size());
        for (std::size_t i = 0; i < given.size(); ++i) {
          INFO("order " << i);
          REQUIRE(Ints(given[i].shape().begin(), given[i].shape().end()) ==
                  Ints(expected[i].shape().begin(), expected[i].shape().end()));
          const std::size_t count = given[i].view().size();
          bool equal = true;
          for (std::size_t k = 0; k < count; ++k) {
            const float a = given[i].data<float>()[k], b = expected[i].data<float>()[k];
            equal = equal && a == Approx(b).epsilon(1e-4).margin(2e-3);
          }
          CHECK(equal);
        }
      }
    }
  }
}

TEST_CASE("channels-last: a transpose reads the copy with the channels last, in one step") {
  onnx::ModelProto model = ModelOf({1, 4, 3, 5});
  Chain chain(model.mutable_graph(), "c", 2);
  chain.Conv("x");
  const auto kernels = [&](const Ints& perm) {
    onnx::ModelProto whole = model;
    AddIntList(AddNode(whole.mutable_graph(), "Transpose", {chain.last()}, "y"), "perm", perm);
    return RunPasses({"pack-products", "channels-last"}, whole, {1, 4, 3, 5}).after;
  };
  CHECK(KernelsOf(kernels({0, 2, 3, 1})) == Lines{"rewire.transpose", "rewire.packed.conv"});
  for (const Ints& perm : Permutations(4)) {
    // One of the input, and one of the output.
    const Lines lines = KernelsOf(kernels(perm));
    CHECK(std::count(lines.begin(), lines.end(), "rewire.transpose") <= 2);
  }
}

}  // namespace
}  // namespace rewire::test
