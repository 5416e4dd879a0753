// SPDX-License-Identifier: Apache-2.0
// GlobalLpPool for all ranks and powers, against sums in f64.
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

// "y" of "x" less 5, so that some elements are negative.
onnx::NodeProto* AddPool(OneOutput* model) {
  AddFloats(model->graph(), "five", {}, {5});
  AddNode(model->graph(), "Sub", {"x", "five"}, "shifted");
  return AddNode(model->graph(), "GlobalLpPool", {"shifted"}, "y");
}

std::vector<float> Expected(const Shape& shape, double p) {
  std::int64_t spatial = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) spatial *= shape[i];
  std::vector<float> roots;
  for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < spatial; ++i) {
      sum += std::pow(std::abs(static_cast<double>(row * spatial + i) - 5), p);
    }
    roots.push_back(static_cast<float>(std::pow(sum, 1 / p)));
  }
  return roots;
}

TEST_CASE("GlobalLpPool takes the root of the sum of powers, for all ranks and powers") {
  for (const Shape& shape :
       {Shape{2, 3, 4}, Shape{1, 2, 3, 2}, Shape{2, 1, 2, 2, 2}, Shape{1, 1, 2, 1, 2, 2}}) {
    Shape pooled = shape;
    for (std::size_t i = 2; i < shape.size(); ++i) pooled[i] = 1;
    for (const std::int64_t p : {1, 2, 3, 4, 7}) {
      for (const bool open : {false, true}) {
        std::vector<Dim> dims;
        for (const std::int64_t dim : shape) dims.push_back(open ? Dim("") : Dim(dim));
        OneOutput model(22, dims);
        AddInt(AddPool(&model), "p", p);
        model.Expect(shape, pooled, Expected(shape, static_cast<double>(p)));
      }
    }
  }
}

TEST_CASE("GlobalLpPool of operator set 1 has a float for its power, and 2 without one") {
  OneOutput model(1, {1, 1, 4});
  onnx::NodeProto* node = AddNode(model.graph(), "GlobalLpPool", {"x"}, "y");
  double p = 2;
  SECTION("without") {}
  SECTION("with a fraction") {
    p = 2.5;
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("p");
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(2.5F);
  }
  double sum = 0;
  for (const double x : {1.0, 2.0, 3.0}) sum += std::pow(x, p);
  model.Expect({1, 1, 4}, {1, 1, 1}, {static_cast<float>(std::pow(sum, 1 / p))});
}

TEST_CASE("GlobalLpPool refuses what has no meaning") {
  const auto reason = [](const std::vector<Dim>& dims, std::int64_t p) {
    OneOutput model(22, dims);
    AddInt(AddPool(&model), "p", p);
    const Outcome outcome = CompileProto(*model.model());
    return outcome.unsupported.empty() ? outcome.message : outcome.unsupported[0].reason;
  };
  CHECK(reason({2, 3}, 2) == "X has shape [2, 3], which has no spatial axes");
  CHECK(reason({2, 3, 4}, 0) == "p is 0, expected a positive number");
}

}  // namespace
}  // namespace rewire::test
