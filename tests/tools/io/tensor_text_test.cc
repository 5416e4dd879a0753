// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/tensor_text.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/vm/tensor.h"

namespace rewire::tools {
namespace {

template <typename T>
HostTensor Of(std::vector<std::int64_t> shape, const std::vector<T>& elements) {
  HostTensor tensor;
  tensor.dtype = DTypeOf<T>();
  tensor.shape = std::move(shape);
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)});
  return tensor;
}

std::vector<std::int32_t> UpTo(std::int32_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST_CASE("scalars, vectors and empty tensors") {
  CHECK(TensorText(Of<float>({}, {1.5F})) == "1.5");
  CHECK(TensorText(Of<std::int32_t>({3}, {1, -20, 3})) == "[  1, -20,   3]");
  CHECK(TensorText(Of<float>({0, 3}, {})) == "[]");
  CHECK(TensorText(Of<float>({2}, {1.0F / 3, 1e-10F})) == "[0.333333,    1e-10]");
  CHECK(TensorText(Of<float>({1, 1, 1}, {2})) == "[[[2]]]");
}

TEST_CASE("brackets by dimension, a blank line between matrices") {
  CHECK(TensorText(Of<std::int32_t>({2, 2, 3}, UpTo(12))) ==
        "[[[ 0,  1,  2],\n"
        "  [ 3,  4,  5]],\n"
        "\n"
        " [[ 6,  7,  8],\n"
        "  [ 9, 10, 11]]]");
}

TEST_CASE("large tensors show their edges") {
  TensorTextOptions options;
  options.threshold = 10;
  options.edge = 2;
  CHECK(TensorText(Of<std::int32_t>({11}, UpTo(11)), options) == "[ 0,  1, ...,  9, 10]");
  CHECK(TensorText(Of<std::int32_t>({6, 6}, UpTo(36)), options) ==
        "[[ 0,  1, ...,  4,  5],\n"
        " [ 6,  7, ..., 10, 11],\n"
        " ...,\n"
        " [24, 25, ..., 28, 29],\n"
        " [30, 31, ..., 34, 35]]");
}

TEST_CASE("trees print on one line, and end") {
  const Result<Tensor> tensor = Tensor::Make(kFloat32, {2, 3});
  REQUIRE(tensor.has_value());
  const Result<Value> inner = Value::Adt(1, {Value(std::int64_t{5})});
  REQUIRE(inner.has_value());
  const Result<Value> tree = Value::Adt(0, {Value(*tensor), *inner});
  REQUIRE(tree.has_value());
  CHECK(ValueText(*tree) == "adt 0 (f32[2, 3], adt 1 (5))");

  Value list = *inner;
  for (int i = 0; i < 100000; ++i) list = *Value::Adt(2, {list});
  const std::string text = ValueText(list);
  CHECK(text.size() < 1000);
  CHECK(text.substr(text.size() - 3) == "...");
}

}  // namespace
}  // namespace rewire::tools
