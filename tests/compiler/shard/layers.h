// SPDX-License-Identifier: Apache-2.0
// Models with random weights that tests split over ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/compiler/shard/local_ranks.h"

namespace rewire::test {

// The same numbers for the same seed, in [-1, 1).
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed * 2 + 1) {}

  float Next();
  // In [0, below).
  std::int64_t Below(std::int64_t below);
  std::vector<float> Floats(std::int64_t count, float scale = 1);

 private:
  std::uint64_t state_;
};

// Adds layers to a graph. Names of weights are made of those of the outputs.
class Layers {
 public:
  Layers(onnx::ModelProto* model, std::uint64_t seed);

  onnx::GraphProto* graph() { return graph_; }
  RandomNumbers& random() { return random_; }

  std::string Weight(const std::string& name, const std::vector<std::int64_t>& shape);
  // A node with one output of this name.
  onnx::NodeProto* Node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::string& output);
  // x [.., from] times weights [from, to], with a bias of its own.
  std::string Linear(const std::string& x, std::int64_t from, std::int64_t to, const std::string& output,
                     bool bias = true);
  std::string Reshape(const std::string& x, const std::vector<std::int64_t>& dims, const std::string& output);
  std::string Transpose(const std::string& x, const std::vector<std::int64_t>& perm,
                        const std::string& output);
  std::string Norm(const std::string& x, std::int64_t size, const std::string& output);
  // [batch, length, heads * size] as [batch, heads, length, size].
  std::string Heads(const std::string& x, std::int64_t heads, std::int64_t size, const std::string& output);
  // softmax(q k^T) v of tensors with heads, joined to [batch, length, heads * size].
  std::string Attend(const std::string& q, const std::string& k, const std::string& v, std::int64_t heads,
                     std::int64_t size, const std::string& output);
  // A network of two layers over x [.., 64], with `hidden` in between.
  std::string Network(const std::string& x, std::int64_t hidden, const std::string& output);
  // Adds x and y.
  std::string Add(const std::string& x, const std::string& y, const std::string& output);

 private:
  onnx::GraphProto* graph_;
  RandomNumbers random_;
};

// A model with an input x [1, length, 64] and an output y. `length` 0: it is open.
onnx::ModelProto ModelOfTokens(std::int64_t length);
// Layers of an encoder between x and y: attention of 4 heads, and a network of 256.
onnx::ModelProto Encoder(std::int64_t layers, std::int64_t length = 6, std::uint64_t seed = 1);
// A decoder whose caches are inputs `past_key_0` [1, 4, P, 16] and so on, and outputs `key_0`.
onnx::ModelProto Decoder(std::int64_t layers, std::uint64_t seed = 1);
// Four experts, of which each token takes a weighted sum.
onnx::ModelProto Experts(std::uint64_t seed = 1);
// The product of two networks of 256 over the same tokens. Neither needs the other.
onnx::ModelProto Towers(std::uint64_t seed = 1);

Tensor RandomTensor(RandomNumbers* random, const std::vector<std::int64_t>& shape);
// Part `rank` of `ranks` of a tensor of floats along an axis.
Tensor PartOf(const Tensor& tensor, std::int64_t axis, std::int64_t rank, std::int64_t ranks);

// The outputs of `main` of one program.
RankResult RunWhole(const onnx::ModelProto& model, const NamedTensors& inputs);

struct ShardedModel {
  std::string error;
  std::vector<Executable> executables;
  std::vector<compiler::Compiled> compiled;
};
ShardedModel CompileShards(const onnx::ModelProto& model, std::int64_t shards, std::int64_t stages = 1,
                           ShardGoal goal = ShardGoal::kMemory);

// The largest difference of two tensors of floats; infinite if their shapes differ.
double Difference(const Tensor& a, const Tensor& b);

}  // namespace rewire::test
