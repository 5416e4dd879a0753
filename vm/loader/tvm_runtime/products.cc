// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_runtime/products.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/vm/loader/tvm_runtime/arguments.h"

namespace rewire::tvm_runtime {
namespace {

enum class Elements : std::uint8_t { kFloats, kBytes };

struct Product {
  const char* name;
  Elements elements;
  std::int32_t rank;  // 3: one product for each matrix of a batch
};

// Row-major matrices as they lie in memory.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t rows, columns;
};

// The matrix at `place` of a batch; a batch of one serves all places.
template <typename T>
Matrix<T> MatrixAt(const DLTensor& tensor, std::int64_t place) {
  const std::int64_t* shape = tensor.shape + tensor.ndim - 2;
  auto* data = reinterpret_cast<T*>(DataOf(tensor));
  const bool shared = tensor.ndim == 2 || tensor.shape[0] == 1;
  return {data + (shared ? 0 : place * shape[0] * shape[1]), shape[0], shape[1]};
}

template <typename A, typename B, typename C>
int Multiply(const Matrix<A>& a, const Matrix<B>& b, const Matrix<C>& c, bool transpose_a, bool transpose_b) {
  // Sums of integers wrap around, which is defined for unsigned ones alone.
  using Sum = std::conditional_t<std::is_integral_v<C>, std::uint32_t, C>;
  const std::int64_t depth = transpose_a ? a.rows : a.columns;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    if (CheckCancelled() != 0) return -1;
    C* row = c.data + i * c.columns;
    std::fill_n(row, c.columns, C{0});
    const auto left = [&](std::int64_t k) {
      return static_cast<C>(a.data[transpose_a ? k * a.columns + i : i * a.columns + k]);
    };
    if (!transpose_b) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const auto factor = static_cast<Sum>(left(k));
        const B* right = b.data + k * b.columns;
        for (std::int64_t j = 0; j < c.columns; ++j) {
          row[j] = static_cast<C>(static_cast<Sum>(row[j]) + factor * static_cast<Sum>(C{right[j]}));
        }
      }
      continue;
    }
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const B* right = b.data + j * b.columns;
      Sum sum{0};
      for (std::int64_t k = 0; k < depth; ++k)
        sum += static_cast<Sum>(left(k)) * static_cast<Sum>(C{right[k]});
      row[j] = static_cast<C>(sum);
    }
  }
  return 0;
}

template <typename A, typename B, typename C>
int MultiplyAll(const DLTensor& a, const DLTensor& b, const DLTensor& c, bool transpose_a, bool transpose_b) {
  const std::int64_t batch = c.ndim == 2 ? 1 : c.shape[0];
  for (std::int64_t i = 0; i < batch; ++i) {
    const int status =
        Multiply(MatrixAt<A>(a, i), MatrixAt<B>(b, i), MatrixAt<C>(c, i), transpose_a, transpose_b);
    if (status != 0) return status;
  }
  return 0;
}

bool ShapesFit(const DLTensor& a, const DLTensor& b, const DLTensor& c, bool transpose_a, bool transpose_b) {
  if (c.ndim == 3) {
    for (const DLTensor* factor : {&a, &b}) {
      if (factor->shape[0] != c.shape[0] && factor->shape[0] != 1) return false;
    }
  }
  const std::int64_t* a_shape = a.shape + a.ndim - 2;
  const std::int64_t* b_shape = b.shape + b.ndim - 2;
  const std::int64_t* c_shape = c.shape + c.ndim - 2;
  return a_shape[transpose_a ? 1 : 0] == c_shape[0] && b_shape[transpose_b ? 0 : 1] == c_shape[1] &&
         a_shape[transpose_a ? 0 : 1] == b_shape[transpose_b ? 1 : 0];
}

int RunProduct(const Product& product, const ClassicValue* values, const int* codes, int count) {
  Arguments args(product.name, values, codes, count);
  const DLTensor* a = args.TensorAt(0);
  const DLTensor* b = args.TensorAt(1);
  const DLTensor* c = args.TensorAt(2);
  const bool transpose_a = args.IntegerAt(3) != 0;
  const bool transpose_b = args.IntegerAt(4) != 0;
  if (!args.error().empty()) return Fail(args.error());
  const bool floats = product.elements == Elements::kFloats;
  const bool dtypes_fit =
      floats ? (a->dtype == kFloat32 || a->dtype == kFloat64) && b->dtype == a->dtype && c->dtype == a->dtype
             : a->dtype == kUInt8 && b->dtype == kInt8 && c->dtype == kInt32;
  if (!dtypes_fit || a->ndim != product.rank || b->ndim != product.rank || c->ndim != product.rank) {
    return Fail({"{}: three tensors of rank {} and of {} expected", product.name, product.rank,
                 floats ? "f32 or f64" : "u8, i8 and i32"});
  }
  if (!ShapesFit(*a, *b, *c, transpose_a, transpose_b)) {
    return Fail({"{}: the shapes do not fit together", product.name});
  }
  if (!floats) {
    return MultiplyAll<std::uint8_t, std::int8_t, std::int32_t>(*a, *b, *c, transpose_a, transpose_b);
  }
  if (a->dtype == kFloat32) return MultiplyAll<float, float, float>(*a, *b, *c, transpose_a, transpose_b);
  return MultiplyAll<double, double, double>(*a, *b, *c, transpose_a, transpose_b);
}

constexpr Product kProducts[] = {
    {"tvm.contrib.cblas.matmul", Elements::kFloats, 2},
    {"tvm.contrib.cblas.batch_matmul", Elements::kFloats, 3},
    {"tvm.contrib.cblas.batch_matmul_iterative", Elements::kFloats, 3},
    {"tvm.contrib.mkl.matmul", Elements::kFloats, 2},
    {"tvm.contrib.mkl.batch_matmul", Elements::kFloats, 3},
    {"tvm.contrib.mkl.batch_matmul_iterative", Elements::kFloats, 3},
    {"tvm.contrib.mkl.matmul_u8s8s32", Elements::kBytes, 2},
    {"tvm.contrib.dnnl.matmul", Elements::kFloats, 2},
};

template <std::size_t kIndex>
int ProductAt(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
              void* /*resource*/) {
  return RunProduct(kProducts[kIndex], values, codes, count);
}

template <std::size_t... kIndex>
constexpr std::array<Function, sizeof...(kIndex)> FunctionsOf(std::index_sequence<kIndex...> /*places*/) {
  return {{{kProducts[kIndex].name, &ProductAt<kIndex>}...}};
}
constexpr auto kFunctions = FunctionsOf(std::make_index_sequence<std::size(kProducts)>());

}  // namespace

Span<const Function> Products() { return {kFunctions.data(), kFunctions.size()}; }

}  // namespace rewire::tvm_runtime
