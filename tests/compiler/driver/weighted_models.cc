// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/driver/weighted_models.h"

#include <catch2/catch.hpp>
#include <utility>

#include "rewire/executable_format/writer.h"
#include "rewire/vm/loader/ffi_shim/half.h"
#include "rewire/vm/vm.h"

namespace rewire::test {

void WeightedModel::HalfWeight(const std::string& name, const Ints& dims) {
  onnx::TensorProto* tensor = AddWeight(proto_.mutable_graph(), name, onnx::TensorProto::FLOAT16, dims);
  for (const float element : Elements(dims)) tensor->add_int32_data(ffi_shim::FloatToHalf(element));
}

std::string WeightedModel::Bytes() {
  if (proto_.graph().output_size() == 0) SetValue(proto_.mutable_graph()->add_output(), "y", {});
  proto_.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return proto_.SerializeAsString();
}

std::vector<float> WeightedModel::Elements(const Ints& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  std::vector<float> elements;
  for (std::int64_t i = 0; i < count; ++i)
    elements.push_back(0.25F + 0.125F * static_cast<float>((i * 7 + seed_ * 5 + next_ * 3) % 13));
  ++next_;
  return elements;
}

namespace {

WeightedModel ConvThen(int seed, const std::string& type, const Ints& weights,
                       const std::function<void(WeightedModel*)>& after) {
  WeightedModel model(seed, {1, weights[type == "Conv" ? 1 : 0], 8, 8});
  model.Weight("w", weights);
  onnx::NodeProto* conv = model.Node(type, {"x", "w"}, "c");
  if (type == "ConvTranspose") AddIntList(conv, "strides", {weights[2], weights[3]});
  after(&model);
  return model;
}

}  // namespace

const std::vector<WeightedCase>& WeightedCases() {
  static const std::vector<WeightedCase> cases = {
      {"a product with a bias behind it",
       [](int seed) {
         WeightedModel model(seed, {3, 20});
         model.Weight("w", {20, 24});
         model.Weight("b", {24});
         model.Node("MatMul", {"x", "w"}, "p");
         model.Node("Add", {"p", "b"}, "s");
         model.Node("Relu", {"s"}, "y");
         return model;
       }},
      {"one weight read by two products and by a sum",
       [](int seed) {
         WeightedModel model(seed, {4, 16});
         model.Weight("w", {16, 16});
         model.Node("MatMul", {"x", "w"}, "p");
         model.Node("MatMul", {"p", "w"}, "q");
         onnx::NodeProto* mean = model.Node("ReduceMean", {"w"}, "s");
         AddIntList(mean, "axes", {0});
         AddInt(mean, "keepdims", 0);
         model.Node("Add", {"q", "s"}, "y");
         return model;
       }},
      {"Gemm by turned weights",
       [](int seed) {
         WeightedModel model(seed, {3, 20});
         model.Weight("w", {24, 20});
         model.Weight("b", {1, 24});
         AddInt(model.Node("Gemm", {"x", "w", "b"}, "y"), "transB", 1);
         return model;
       }},
      {"weights of 16 bits",
       [](int seed) {
         WeightedModel model(seed, {3, 20});
         model.HalfWeight("w", {20, 24});
         AddInt(model.Node("Cast", {"w"}, "wide"), "to", onnx::TensorProto::FLOAT);
         model.Node("MatMul", {"x", "wide"}, "y");
         return model;
       }},
      {"a convolution, batch normalization and more for each channel",
       [](int seed) {
         return ConvThen(seed, "Conv", {8, 3, 5, 5}, [](WeightedModel* model) {
           for (const char* name : {"scale", "bias", "mean", "variance"}) model->Weight(name, {8});
           for (const char* name : {"factor", "term", "less", "divisor"}) model->Weight(name, {8, 1, 1});
           model->Node("BatchNormalization", {"c", "scale", "bias", "mean", "variance"}, "n");
           model->Node("Mul", {"n", "factor"}, "f");
           model->Node("Add", {"term", "f"}, "t");
           model->Node("Sub", {"t", "less"}, "l");
           model->Node("Div", {"l", "divisor"}, "y");
         });
       }},
      {"a convolution of 3 x 3 windows",
       [](int seed) {
         return ConvThen(seed, "Conv", {16, 16, 3, 3},
                         [](WeightedModel* model) { model->Node("Relu", {"c"}, "y"); });
       }},
      {"a depthwise convolution with a bias",
       [](int seed) {
         WeightedModel model(seed, {1, 8, 8, 8});
         model.Weight("w", {8, 1, 3, 3});
         model.Weight("b", {8});
         AddInt(model.Node("Conv", {"x", "w", "b"}, "y"), "group", 8);
         return model;
       }},
      {"a transposed convolution and a factor",
       [](int seed) {
         return ConvThen(seed, "ConvTranspose", {4, 6, 2, 2}, [](WeightedModel* model) {
           model->Weight("factor", {6, 1, 1});
           model->Node("Mul", {"c", "factor"}, "y");
         });
       }},
      {"batch normalization that follows no convolution",
       [](int seed) {
         WeightedModel model(seed, {2, 6, 4, 4});
         for (const char* name : {"scale", "bias", "mean", "variance"}) model.Weight(name, {6});
         model.Node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, "n");
         model.Node("Relu", {"n"}, "y");
         return model;
       }},
      {"layer normalization in parts",
       [](int seed) {
         WeightedModel model(seed, {3, 16});
         model.Weight("scale", {16});
         model.Weight("bias", {16});
         model.Node("LayerNormalization", {"x", "scale", "bias"}, "y");
         return model;
       }},
      {"recurrent layers in both directions",
       [](int seed) {
         WeightedModel model(seed, {5, 2, 6});
         model.Weight("w", {2, 64, 6});
         model.Weight("r", {2, 64, 16});
         model.Weight("b", {2, 128});
         onnx::NodeProto* layer = model.Node("LSTM", {"x", "w", "r", "b"}, "y");
         AddString(layer, "direction", "bidirectional");
         AddInt(layer, "hidden_size", 16);
         return model;
       }},
      {"a table that a recurrent layer reads",
       [](int seed) {
         WeightedModel model(seed, {4});
         AddInt(model.Node("Cast", {"x"}, "integers"), "to", onnx::TensorProto::INT64);
         AddInts(model.graph(), "as_rows", {4, 1});
         model.Node("Reshape", {"integers", "as_rows"}, "ids");
         model.Weight("table", {9, 3});
         model.Weight("w", {1, 8, 3});
         model.Weight("r", {1, 8, 2});
         model.Weight("b", {1, 16});
         model.Node("Gather", {"table", "ids"}, "rows");
         model.Node("LSTM", {"rows", "w", "r", "b"}, "y");
         return model;
       }},
      {"an image of weights beside one with its channels last",
       [](int seed) {
         return ConvThen(seed, "Conv", {8, 3, 1, 1}, [](WeightedModel* model) {
           model->Weight("position", {1, 8, 8, 8});
           model->Weight("w2", {4, 8, 1, 1});
           model->Node("Add", {"c", "position"}, "a");
           model->Node("Conv", {"a", "w2"}, "y");
         });
       }},
      {"weights that are turned, and a result that is a weight",
       [](int seed) {
         WeightedModel model(seed, {3, 20});
         model.Weight("w", {24, 20});
         model.Node("Transpose", {"w"}, "t");
         model.Node("MatMul", {"x", "t"}, "p");
         model.Node("ReduceMean", {"p"}, "m");
         model.Node("Add", {"w", "m"}, "y");
         return model;
       }},
      {"a node Constant",
       [](int seed) {
         WeightedModel model(seed, {3, 4});
         onnx::AttributeProto* value = model.Node("Constant", {}, "w")->add_attribute();
         value->set_name("value");
         value->set_type(onnx::AttributeProto::TENSOR);
         WeightedModel weights(seed, {1});
         weights.Weight("w", {4, 5});
         *value->mutable_t() = weights.graph()->initializer(0);
         model.Node("MatMul", {"x", "w"}, "y");
         return model;
       }},
  };
  return cases;
}

std::vector<std::byte> FileOf(const Outcome& outcome) {
  Result<std::vector<std::byte>> file = SerializeModule(outcome.compiled.module);
  REQUIRE(file);
  return *std::move(file);
}

std::vector<float> RunWith(const Outcome& outcome, const ParameterSet& parameters, const Ints& shape) {
  const Result<Executable> executable = Executable::FromModule(outcome.compiled.module);
  REQUIRE(executable);
  LinkOptions options;
  options.parameters.push_back(parameters);
  const Result<Program> program = Program::Link(*executable, std::move(options));
  INFO((program ? "" : program.error().message()));
  REQUIRE(program);
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(i % 5));
  VirtualMachine vm(*program);
  REQUIRE(vm.TrySetInput("x", TensorView(x.data(), DTypeOf<float>(), {shape.data(), shape.size()})));
  const Status done = vm.TryInvoke();
  INFO((done ? "" : done.error().message()));
  REQUIRE(done);
  const Tensor y = vm.result().tensor();
  return {y.data<float>(), y.data<float>() + y.view().size()};
}

}  // namespace rewire::test
