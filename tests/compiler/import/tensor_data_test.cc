// SPDX-License-Identifier: Apache-2.0
// Weights of which a model has only the elements that are not 0.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

// "w" of this shape with 5 and 7 at the indices.
void Fill(onnx::SparseTensorProto* sparse, const Shape& shape, const Shape& index_shape,
          const std::vector<std::int64_t>& indices) {
  for (const std::int64_t dim : shape) sparse->add_dims(dim);
  sparse->mutable_values()->set_name("w");
  sparse->mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(2);
  for (const float value : {5.0F, 7.0F}) sparse->mutable_values()->add_float_data(value);
  sparse->mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  for (const std::int64_t dim : index_shape) sparse->mutable_indices()->add_dims(dim);
  for (const std::int64_t index : indices) sparse->mutable_indices()->add_int64_data(index);
}

TEST_CASE("sparse weights have zeros elsewhere") {
  OneOutput model(17, {2, 3});
  const bool linear = GENERATE(false, true);
  onnx::SparseTensorProto* sparse = nullptr;
  SECTION("as an initializer") { sparse = model.graph()->add_sparse_initializer(); }
  SECTION("as a constant") {
    onnx::AttributeProto* attribute = AddNode(model.graph(), "Constant", {}, "w")->add_attribute();
    attribute->set_name("sparse_value");
    attribute->set_type(onnx::AttributeProto::SPARSE_TENSOR);
    sparse = attribute->mutable_sparse_tensor();
  }
  if (linear) {
    Fill(sparse, {2, 3}, {2}, {1, 5});
  } else {
    Fill(sparse, {2, 3}, {2, 2}, {0, 1, 1, 2});
  }
  AddNode(model.graph(), "Add", {"x", "w"}, "y");
  model.Expect({2, 3}, {2, 3}, {0, 6, 2, 3, 4, 12});
}

TEST_CASE("sparse weights that are none") {
  OneOutput model(17, {2, 3});
  onnx::SparseTensorProto* sparse = model.graph()->add_sparse_initializer();
  AddNode(model.graph(), "Add", {"x", "w"}, "y");
  std::string message;
  SECTION("an index outside the shape") {
    Fill(sparse, {2, 3}, {2, 2}, {0, 1, 1, 3});
    message = "model: sparse tensor 'w': index 1 is 3, expected one below 3";
  }
  SECTION("a negative index") {
    Fill(sparse, {2, 3}, {2}, {-1, 0});
    message = "model: sparse tensor 'w': index 0 is -1, expected one below 6";
  }
  SECTION("fewer indices than values") {
    Fill(sparse, {2, 3}, {1}, {1});
    message =
        "model: sparse tensor 'w' has values [2] and indices [1], expected [n] and [n] or [n, 2] of i64";
  }
  CHECK(CompileProto(*model.model()).message == message);
}

TEST_CASE("sparse weights with more zeros than memory are listed") {
  OneOutput model(17, {2, 3});
  Fill(model.graph()->add_sparse_initializer(), {std::int64_t{1} << 20, 1024}, {2}, {1, 2});
  AddNode(model.graph(), "Add", {"x", "w"}, "y");
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason ==
        "sparse tensor 'w' has 4294967296 bytes with its zeros, 1073741824 are left for such tensors; allow "
        "more "
        "with --max-fold-bytes (CompileLimits::fold_bytes)");
}

}  // namespace
}  // namespace rewire::test
