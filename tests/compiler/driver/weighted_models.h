// SPDX-License-Identifier: Apache-2.0
// Models whose results depend on all of their weights, in many forms of use. Weights follow from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/parameter_set.h"

namespace rewire::test {

using Ints = std::vector<std::int64_t>;

// A model with an input "x", an output "y" and weights that follow from a seed.
class WeightedModel {
 public:
  explicit WeightedModel(int seed, Ints x, std::int64_t opset = 17)
      : proto_(EmptyModel(opset)), seed_(seed), x_(std::move(x)) {
    std::vector<Dim> dims(x_.begin(), x_.end());
    SetValue(proto_.mutable_graph()->add_input(), "x", dims);
  }

  // Numbers from 0.25 to 1.75, so that they may be variances and divisors.
  void Weight(const std::string& name, const Ints& dims) {
    AddFloats(proto_.mutable_graph(), name, dims, Elements(dims));
  }
  void HalfWeight(const std::string& name, const Ints& dims);
  onnx::NodeProto* Node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::string& output) {
    return AddNode(proto_.mutable_graph(), type, inputs, output);
  }
  onnx::GraphProto* graph() { return proto_.mutable_graph(); }
  const Ints& x() const { return x_; }
  std::string Bytes();

 private:
  std::vector<float> Elements(const Ints& dims);

  onnx::ModelProto proto_;
  int seed_;
  int next_ = 0;
  Ints x_;
};

struct WeightedCase {
  const char* name;
  std::function<WeightedModel(int seed)> make;
};
const std::vector<WeightedCase>& WeightedCases();

// The bytes of the executable's file.
std::vector<std::byte> FileOf(const Outcome& outcome);
// The elements of "y" for an "x" of this shape, which holds 0 to 4 over and over. It links the executable
// with the parameters.
std::vector<float> RunWith(const Outcome& outcome, const ParameterSet& parameters, const Ints& shape);

}  // namespace rewire::test
