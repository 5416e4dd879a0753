// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/shard/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace rewire::test {
namespace {

constexpr std::int64_t kWidth = 64, kHeads = 4, kSize = 16;

std::string Numbered(const std::string& name, std::int64_t layer) {
  return name + "_" + std::to_string(layer);
}

}  // namespace

float RandomNumbers::Next() {
  state_ = state_ * 6364136223846793005U + 1442695040888963407U;
  return static_cast<float>(static_cast<std::int64_t>(state_ >> 40) - (1 << 23)) /
         static_cast<float>(1 << 23);
}

std::int64_t RandomNumbers::Below(std::int64_t below) {
  Next();
  return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(below));
}

std::vector<float> RandomNumbers::Floats(std::int64_t count, float scale) {
  std::vector<float> floats(static_cast<std::size_t>(count));
  for (float& each : floats) each = Next() * scale;
  return floats;
}

Layers::Layers(onnx::ModelProto* model, std::uint64_t seed) : graph_(model->mutable_graph()), random_(seed) {}

std::string Layers::Weight(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  const std::int64_t depth = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  AddFloats(graph_, name, shape, random_.Floats(count, 1 / std::sqrt(static_cast<float>(depth))));
  return name;
}

onnx::NodeProto* Layers::Node(const std::string& type, const std::vector<std::string>& inputs,
                              const std::string& output) {
  onnx::NodeProto* node = AddNode(graph_, type, inputs, output);
  node->set_name(output);
  return node;
}

std::string Layers::Linear(const std::string& x, std::int64_t from, std::int64_t to,
                           const std::string& output, bool bias) {
  Weight(output + ".weight", {from, to});
  if (!bias) {
    Node("MatMul", {x, output + ".weight"}, output);
    return output;
  }
  Node("MatMul", {x, output + ".weight"}, output + ".product");
  Weight(output + ".bias", {to});
  Node("Add", {output + ".product", output + ".bias"}, output);
  return output;
}

std::string Layers::Reshape(const std::string& x, const std::vector<std::int64_t>& dims,
                            const std::string& output) {
  AddInts(graph_, output + ".dims", dims);
  Node("Reshape", {x, output + ".dims"}, output);
  return output;
}

std::string Layers::Transpose(const std::string& x, const std::vector<std::int64_t>& perm,
                              const std::string& output) {
  AddIntList(Node("Transpose", {x}, output), "perm", perm);
  return output;
}

std::string Layers::Norm(const std::string& x, std::int64_t size, const std::string& output) {
  Weight(output + ".scale", {size});
  Weight(output + ".bias", {size});
  AddInt(Node("LayerNormalization", {x, output + ".scale", output + ".bias"}, output), "axis", -1);
  return output;
}

std::string Layers::Heads(const std::string& x, std::int64_t heads, std::int64_t size,
                          const std::string& output) {
  return Transpose(Reshape(x, {0, 0, heads, size}, output + ".apart"), {0, 2, 1, 3}, output);
}

std::string Layers::Attend(const std::string& q, const std::string& k, const std::string& v,
                           std::int64_t heads, std::int64_t size, const std::string& output) {
  Node("MatMul", {q, Transpose(k, {0, 1, 3, 2}, output + ".keys")}, output + ".scores");
  AddFloats(graph_, output + ".scale", {}, {1 / std::sqrt(static_cast<float>(size))});
  Node("Mul", {output + ".scores", output + ".scale"}, output + ".scaled");
  AddInt(Node("Softmax", {output + ".scaled"}, output + ".probabilities"), "axis", -1);
  Node("MatMul", {output + ".probabilities", v}, output + ".heads");
  return Reshape(Transpose(output + ".heads", {0, 2, 1, 3}, output + ".back"), {0, 0, heads * size}, output);
}

std::string Layers::Network(const std::string& x, std::int64_t hidden, const std::string& output) {
  const std::string activated = output + "_activated";
  Node("Relu", {Linear(x, 64, hidden, output + "_hidden")}, activated);
  return Linear(activated, hidden, 64, output, false);
}

std::string Layers::Add(const std::string& x, const std::string& y, const std::string& output) {
  Node("Add", {x, y}, output);
  return output;
}

onnx::ModelProto ModelOfTokens(std::int64_t length) {
  onnx::ModelProto model = EmptyModel(17);
  const Dim size = length == 0 ? Dim("length") : Dim(length);
  SetValue(model.mutable_graph()->add_input(), "x", {std::int64_t{1}, size, kWidth});
  SetValue(model.mutable_graph()->add_output(), "y", {std::int64_t{1}, size, kWidth});
  return model;
}

onnx::ModelProto Encoder(std::int64_t layers, std::int64_t length, std::uint64_t seed) {
  onnx::ModelProto model = ModelOfTokens(length);
  Layers add(&model, seed);
  std::string x = "x";
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto name = [&](const char* of) { return Numbered(of, i); };
    const std::string in = add.Norm(x, kWidth, name("norm"));
    const std::string q =
        add.Heads(add.Linear(in, kWidth, kWidth, name("q")), kHeads, kSize, name("queries"));
    const std::string k = add.Heads(add.Linear(in, kWidth, kWidth, name("k")), kHeads, kSize, name("keys"));
    const std::string v = add.Heads(add.Linear(in, kWidth, kWidth, name("v")), kHeads, kSize, name("values"));
    const std::string attended = add.Attend(q, k, v, kHeads, kSize, name("attended"));
    x = add.Add(x, add.Linear(attended, kWidth, kWidth, name("out")), name("residual"));
    add.Linear(add.Norm(x, kWidth, name("norm2")), kWidth, 4 * kWidth, name("up"));
    add.Node("Relu", {name("up")}, name("relu"));
    const std::string down = add.Linear(name("relu"), 4 * kWidth, kWidth, name("down"));
    x = add.Add(x, down, i + 1 == layers ? "y" : name("layer"));
  }
  return model;
}

onnx::ModelProto Decoder(std::int64_t layers, std::uint64_t seed) {
  onnx::ModelProto model = ModelOfTokens(0);
  onnx::GraphProto* graph = model.mutable_graph();
  Layers add(&model, seed);
  std::string x = "x";
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto name = [&](const char* of) { return Numbered(of, i); };
    for (const char* of : {"key", "value"}) {
      SetValue(graph->add_input(), "past_" + name(of), {1, kHeads, "past", kSize});
      SetValue(graph->add_output(), name(of), {1, kHeads, "all", kSize});
    }
    const std::string in = add.Norm(x, kWidth, name("norm"));
    // Queries, keys and values side by side, as GPT-2 has them.
    add.Linear(in, kWidth, 3 * kWidth, name("qkv"));
    AddInts(graph, name("thirds"), {kWidth, kWidth, kWidth});
    onnx::NodeProto* split = add.Node("Split", {name("qkv"), name("thirds")}, name("q"));
    split->add_output(name("k"));
    split->add_output(name("v"));
    AddInt(split, "axis", 2);
    const std::string q = add.Heads(name("q"), kHeads, kSize, name("queries"));
    for (const char* of : {"key", "value"}) {
      const std::string fresh = add.Heads(name(*of == 'k' ? "k" : "v"), kHeads, kSize, name(of) + ".new");
      AddInt(add.Node("Concat", {"past_" + name(of), fresh}, name(of)), "axis", 2);
    }
    const std::string attended = add.Attend(q, name("key"), name("value"), kHeads, kSize, name("attended"));
    x = add.Add(x, add.Linear(attended, kWidth, kWidth, name("out")), name("residual"));
    const std::string second = add.Norm(x, kWidth, name("norm2"));
    add.Linear(second, kWidth, 4 * kWidth, name("gate"), false);
    add.Linear(second, kWidth, 4 * kWidth, name("up"), false);
    add.Node("Sigmoid", {name("gate")}, name("sigmoid"));
    add.Node("Mul", {name("gate"), name("sigmoid")}, name("swish"));
    add.Node("Mul", {name("swish"), name("up")}, name("gated"));
    const std::string down = add.Linear(name("gated"), 4 * kWidth, kWidth, name("down"), false);
    x = add.Add(x, down, i + 1 == layers ? "y" : name("layer"));
  }
  return model;
}

onnx::ModelProto Towers(std::uint64_t seed) {
  onnx::ModelProto model = ModelOfTokens(6);
  Layers layers(&model, seed);
  const std::string first = layers.Network("x", 256, "first");
  layers.Node("Mul", {first, layers.Network("x", 256, "second")}, "y");
  return model;
}

onnx::ModelProto Experts(std::uint64_t seed) {
  onnx::ModelProto model = ModelOfTokens(0);
  Layers add(&model, seed);
  constexpr std::int64_t kExperts = 4;
  const std::string in = add.Norm("x", kWidth, "norm");
  AddInt(add.Node("Softmax", {add.Linear(in, kWidth, kExperts, "router", false)}, "gates"), "axis", -1);
  // [experts, length, 1].
  const std::string gates = add.Transpose("gates", {2, 1, 0}, "of_experts");
  add.Weight("first", {kExperts, kWidth, 2 * kWidth});
  add.Weight("second", {kExperts, 2 * kWidth, kWidth});
  add.Node("MatMul", {in, "first"}, "hidden");
  add.Node("Relu", {"hidden"}, "relu");
  add.Node("MatMul", {"relu", "second"}, "outputs");
  add.Node("Mul", {"outputs", gates}, "weighted");
  AddInts(add.graph(), "axes", {0});
  AddInt(add.Node("ReduceSum", {"weighted", "axes"}, "sum"), "keepdims", 1);
  add.Add("x", "sum", "y");
  return model;
}

Tensor RandomTensor(RandomNumbers* random, const std::vector<std::int64_t>& shape) {
  Tensor tensor = *Tensor::Make(DTypeOf<float>(), {shape.data(), shape.size()});
  float* elements = tensor.data<float>();
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.view().size()); ++i)
    elements[i] = random->Next();
  return tensor;
}

Tensor PartOf(const Tensor& tensor, std::int64_t axis, std::int64_t rank, std::int64_t ranks) {
  std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  std::int64_t rows = 1, row = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) (std::cmp_less(i, axis) ? rows : row) *= shape[i];
  shape[static_cast<std::size_t>(axis)] /= ranks;
  Tensor part = *Tensor::Make(DTypeOf<float>(), {shape.data(), shape.size()});
  const std::int64_t own = row / ranks;
  for (std::int64_t i = 0; i < rows && own > 0; ++i) {
    std::memcpy(part.data<float>() + i * own, tensor.data<float>() + i * row + rank * own,
                static_cast<std::size_t>(own) * sizeof(float));
  }
  return part;
}

RankResult RunWhole(const onnx::ModelProto& model, const NamedTensors& inputs) {
  Outcome whole = CompileProto(model);
  if (!whole.message.empty()) return {whole.message, {}};
  const Result<Executable> executable = Executable::FromModule(std::move(whole.compiled.module));
  if (!executable) return {executable.error().message(), {}};
  return RunRanks({*executable}, {inputs})[0];
}

ShardedModel CompileShards(const onnx::ModelProto& model, std::int64_t shards, std::int64_t stages,
                           ShardGoal goal) {
  ShardedModel sharded;
  compiler::CompileOptions options;
  options.shards = shards;
  options.stages = stages;
  options.shard_goal = goal;
  for (options.rank = 0; options.rank < std::max(shards, stages); ++options.rank) {
    Outcome outcome = CompileProto(model, options);
    sharded.error = outcome.message;
    if (!outcome.message.empty()) return sharded;
    const Result<Executable> executable = Executable::FromModule(outcome.compiled.module);
    if (!executable) {
      sharded.error = executable.error().message();
      return sharded;
    }
    sharded.executables.push_back(*executable);
    sharded.compiled.push_back(std::move(outcome.compiled));
  }
  return sharded;
}

double Difference(const Tensor& a, const Tensor& b) {
  const std::vector<std::int64_t> shape(a.shape().begin(), a.shape().end());
  if (!std::equal(shape.begin(), shape.end(), b.shape().begin(), b.shape().end()))
    return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.view().size()); ++i) {
    const double difference = std::abs(static_cast<double>(a.data<float>()[i]) - b.data<float>()[i]);
    most = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(most, difference);
  }
  return most;
}

}  // namespace rewire::test
