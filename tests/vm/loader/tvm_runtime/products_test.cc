// SPDX-License-Identifier: Apache-2.0
// Products for code that TVM compiled for a BLAS library, on drawn matrices of small integers: all sums are
// exact.
#include <catch2/catch.hpp>
#include <random>

#include "rewire/base/dtype.h"
#include "rewire/tests/vm/loader/tvm_runtime/call_function.h"

namespace rewire::test {
namespace {

using Dims = std::vector<std::int64_t>;
using Random = std::mt19937_64;

// A matrix, or one for each place of a batch.
template <typename T>
struct Matrices {
  Matrices(const Dims& of, std::uint64_t values, Random& random)
      : dims(of), data(static_cast<std::size_t>(of[0] * of[1] * of[2]) + 1) {
    for (T& element : data)
      element = static_cast<T>(static_cast<int>(random() % values) - static_cast<int>(values / 2));
  }
  TensorView View(bool batched) {
    return {data.data(), DTypeOf<T>(), batched ? dims : Dims{dims[1], dims[2]}};
  }
  T At(std::int64_t place, std::int64_t row, std::int64_t column, bool transpose) const {
    if (transpose) std::swap(row, column);
    if (dims[0] == 1) place = 0;
    return data[static_cast<std::size_t>((place * dims[1] + row) * dims[2] + column)];
  }
  Dims dims;
  std::vector<T> data;
};

template <typename A, typename B, typename C>
std::string Difference(const std::string& name, bool batched, Random& random) {
  const auto draw = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % most); };
  const std::int64_t batch = batched ? 1 + draw(3) : 1, rows = draw(5), depth = draw(5), columns = draw(5);
  const bool transpose_a = draw(2) != 0, transpose_b = draw(2) != 0;
  const auto dims = [&](std::int64_t first, std::int64_t second, bool transpose) {
    const std::int64_t own = draw(3) == 0 ? 1 : batch;
    return transpose ? Dims{own, second, first} : Dims{own, first, second};
  };
  Matrices<A> a(dims(rows, depth, transpose_a), 256, random);
  Matrices<B> b(dims(depth, columns, transpose_b), 200, random);
  Matrices<C> c({batch, rows, columns}, 100, random);
  const std::string error = CallTvmFunction(name, {a.View(batched), b.View(batched), c.View(batched)},
                                            {std::int64_t{transpose_a}, std::int64_t{transpose_b}});
  if (error != "no error") return error;
  for (std::int64_t place = 0; place < batch; ++place) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          sum += static_cast<double>(a.At(place, i, k, transpose_a)) *
                 static_cast<double>(b.At(place, k, j, transpose_b));
        }
        if (static_cast<double>(c.At(place, i, j, false)) != sum) return name + " is wrong";
      }
    }
  }
  return "";
}

TEST_CASE("TVM's products are right for all sizes, transposes and batches") {
  Random random(40);
  for (int i = 0; i < 60; ++i) {
    for (const std::string library : {"cblas", "mkl"}) {
      const std::string prefix = "tvm.contrib." + library;
      CHECK(Difference<float, float, float>(prefix + ".matmul", false, random).empty());
      CHECK(Difference<double, double, double>(prefix + ".matmul", false, random).empty());
      CHECK(Difference<float, float, float>(prefix + ".batch_matmul", true, random).empty());
      CHECK(Difference<double, double, double>(prefix + ".batch_matmul_iterative", true, random).empty());
    }
    CHECK(Difference<float, float, float>("tvm.contrib.dnnl.matmul", false, random).empty());
    CHECK(Difference<std::uint8_t, std::int8_t, std::int32_t>("tvm.contrib.mkl.matmul_u8s8s32", false, random)
              .empty());
  }
}

TEST_CASE("products of other tensors are refused by the name of the function") {
  float memory[64] = {};
  const auto error = [&](const std::string& name, const Dims& a, const Dims& b, const Dims& c) {
    const std::string text =
        CallTvmFunction(name,
                        {TensorView(memory, kFloat32, a), TensorView(memory + 16, kFloat32, b),
                         TensorView(memory + 32, kFloat32, c)},
                        {std::int64_t{0}, std::int64_t{0}});
    return text.substr(text.rfind("tvm.contrib."));
  };
  CHECK(error("tvm.contrib.mkl.matmul", {2, 3}, {2, 2}, {2, 2}) ==
        "tvm.contrib.mkl.matmul: the shapes do not fit together");
  CHECK(error("tvm.contrib.cblas.batch_matmul", {2, 2, 2}, {2, 2, 2}, {3, 2, 2}) ==
        "tvm.contrib.cblas.batch_matmul: the shapes do not fit together");
  CHECK(error("tvm.contrib.dnnl.matmul", {4}, {2, 2}, {2, 2}) ==
        "tvm.contrib.dnnl.matmul: three tensors of rank 2 and of f32 or f64 expected");
  CHECK(error("tvm.contrib.mkl.matmul_u8s8s32", {2, 2}, {2, 2}, {2, 2}) ==
        "tvm.contrib.mkl.matmul_u8s8s32: three tensors of rank 2 and of u8, i8 and i32 expected");
}

}  // namespace
}  // namespace rewire::test
