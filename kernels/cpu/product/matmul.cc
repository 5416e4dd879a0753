// SPDX-License-Identifier: Apache-2.0
// Products of matrices: dense layers, ONNX Gemm, numpy's matmul.
#include "rewire/kernels/cpu/product/matmul.h"
#include "rewire/kernels/cpu/shape/shape_error.h"

#include <algorithm>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/product/einsum_sums.h"
#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/product/gemm_panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/gemm_workspace.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

using MatrixTypes = Types<float, double, std::int32_t, std::int64_t>;

template <typename T>
Matrix<T> RowMajor(TensorView x, bool transposed) {
  const std::int64_t columns = x.dim(1);
  return transposed ? Matrix<T>{x.data<T>(), 1, columns} : Matrix<T>{x.data<T>(), columns, 1};
}

struct Dense {
  static constexpr const char* kName = names::kDense;
  bool transposed = true;  // w is [N, K]
  static Status Make(Attributes& attributes, Dense* dense) {
    dense->transposed = attributes.Bool("transpose_w", true);
    return Status();
  }
  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "w", w, out).SameDType("w", w, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    Dims expected;
    if (Status s = contract::DenseSizes(x.dims(), w.dims(), transposed, &expected, kShapeError); !s.ok())
      return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    const std::int64_t n = w.dim(transposed ? 0 : 1);
    const std::int64_t k = w.dim(transposed ? 1 : 0);
    if (bias) {
      checks.Dense("bias", *bias).SameDType("bias", *bias, "x", x).NoOverlap("out", out, "bias", *bias);
      checks.Shape("bias", *bias, ShapeView(&n, 1));
      if (Status s = checks.Take(); !s.ok()) return s;
    }
    const std::int64_t m = Product(x.dims(), 0, x.ndim() - 1);
    return ForType(MatrixTypes(), "x", x, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      T* c = out.data<T>();
      Pace pace;
      for (std::int64_t i = 0; i < m; ++i) {
        const bool filled =
            bias ? pace.Copy(c + i * n, bias->data<T>(), Times(n, sizeof(T))) : pace.Fill(c + i * n, n, T{0});
        if (!filled || !pace.Spend(1)) return Stopped();
      }
      GemmScratch<T> scratch;
      return Gemm<T>(m, n, k, Matrix<T>{x.data<T>(), k, 1}, RowMajor<T>(w, transposed), c, n, scratch);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 1), *w = sizes.Tensor(1, 2);
    if (x == nullptr || w == nullptr) return false;
    const std::int64_t rows = SizeOf(x) / std::max<std::int64_t>(1, LastDim(x));
    sizes.TakeGemm(rows, w->shape[transposed ? 0 : 1], LastDim(x), x->dtype);
    return true;
  }
};

struct GemmKernel : WithAttributes<contract::GemmAttributes> {
  static constexpr const char* kName = names::kGemm;
  Status operator()(TensorView a, TensorView b, std::optional<TensorView> c, TensorView out) const {
    Checks checks;
    checks.Operands("a", a, "b", b, out).SameDType("b", b, "a", a).SameDType("out", out, "a", a);
    if (c) checks.Dense("c", *c).SameDType("c", *c, "a", a).NoOverlap("out", out, "c", *c);
    if (Status s = checks.Take(); !s.ok()) return s;
    Dims expected;
    if (Status s = ProductSizes(a.dims(), b.dims(), &expected, kShapeError); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (c && !contract::BroadcastsTo(c->dims(), out.dims()))
      return ValueError("c has shape ", c->dims(), ", which does not broadcast to ", out.dims());
    const std::int64_t m = expected[0], n = expected[1], k = a.dim(transpose_a ? 0 : 1);
    return ForType(MatrixTypes(), "a", a,
                   [&](auto tag) { return Multiply<typename decltype(tag)::type>(a, b, c, out, m, n, k); });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *a = sizes.Tensor(0, 2), *b = sizes.Tensor(1, 2);
    if (a == nullptr || b == nullptr) return false;
    sizes.TakeGemm(a->shape[transpose_a ? 1 : 0], b->shape[transpose_b ? 0 : 1],
                   a->shape[transpose_a ? 0 : 1], a->dtype);
    return true;
  }

 private:
  // The product is complete before it is scaled: Gemm adds to what it finds.
  template <typename T>
  Status Multiply(TensorView a, TensorView b, const std::optional<TensorView>& c, TensorView out,
                  std::int64_t m, std::int64_t n, std::int64_t k) const {
    T* to = out.data<T>();
    const std::int64_t size = out.size();
    if (Status s = FillAll(to, size, T{0}); !s.ok()) return s;
    GemmScratch<T> scratch;
    const Matrix<T> left = RowMajor<T>(a, transpose_a);
    if (Status s = Gemm<T>(m, n, k, left, RowMajor<T>(b, transpose_b), to, n, scratch); !s.ok()) return s;
    const auto scale = ToType<T>(alpha);
    if (!c && scale == 1) return Status();
    std::int64_t steps[2] = {0, 0};
    if (c) BroadcastStrides(*c, 2, steps);
    const T none = 0;
    const T* from = c ? c->data<T>() : &none;
    const T weight = c ? ToType<T>(beta) : T{0};
    // Rows of terms that follow each other are one.
    const bool follows = steps[1] == 1 && (steps[0] == n || m == 1);
    const std::int64_t rows = follows ? 1 : m, count = follows ? Times(m, n) : n;
    Pace pace;
    for (std::int64_t first = 0; first < count; first += kPace) {
      const std::int64_t some = std::min(kPace, count - first);
      const bool done = pace.For(rows, some, [&](std::int64_t begin, std::int64_t end) {
        // One loop for all rows, which may be short.
        WideLoop(
            [=, of_row = steps[0], of_column = steps[1], sums = to + first, terms = from + first * steps[1]] {
              for (std::int64_t i = begin; i < end; ++i) {
                T* const line = sums + i * n;
                const T* const term = terms + i * of_row;
                if (of_column == 0) {
                  const T shift = Scaled(*term, weight);
                  for (std::int64_t j = 0; j < some; ++j) line[j] = Sum(Scaled(line[j], scale), shift);
                } else {
                  for (std::int64_t j = 0; j < some; ++j)
                    line[j] = Sum(Scaled(line[j], scale), Scaled(term[j], weight));
                }
              }
            });
      });
      if (!done) return Stopped();
    }
    return Status();
  }
  template <typename T>
  static T Sum(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
  template <typename T>
  static T Scaled(T value, T factor) {
    if constexpr (std::is_floating_point_v<T>)
      return value * factor;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(value) * static_cast<Wrapping<T>>(factor));
  }
};

struct MatMul {
  static constexpr const char* kName = names::kMatMul;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    Checks checks;
    checks.Operands("a", a, "b", b, out).SameDType("b", b, "a", a).SameDType("out", out, "a", a);
    if (Status s = checks.Take(); !s.ok()) return s;
    Dims expected;
    if (Status s = MatMulDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    return MatMulInto(a, b, out);
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* a = sizes.Tensor(0, 1);
    return a != nullptr && DeclareMatMul(sizes, a->dtype);
  }

  template <typename T>
  static Status Run(TensorView a, TensorView b, TensorView out) {
    const bool row = a.ndim() == 1;
    const bool column = b.ndim() == 1;
    const std::int64_t k = a.dim(a.ndim() - 1);
    const std::int64_t m = row ? 1 : a.dim(a.ndim() - 2);
    const std::int64_t n = column ? 1 : b.dim(b.ndim() - 1);
    if (out.size() == 0) return Status();
    const Layout<3> batches = BatchLayout(a, b, out, Times(m, n), Times(m, k), Times(k, n));
    // One b for every a: the batches of a are rows of one product.
    const bool one = batches.rank == 1 && batches.strides[0][2] == 0 && batches.strides[0][1] == Times(m, k);
    return Multiply<T>({one ? Times(batches.dims[0], m) : m, n, k, Matrix<T>{a.data<T>(), k, 1},
                        Matrix<T>{b.data<T>(), n, 1}, out.data<T>(), n, one ? OneProduct() : batches});
  }

 private:
  // The loop over one product.
  static Layout<3> OneProduct() {
    Layout<3> one;
    one.Finish();
    return one;
  }
};

}  // namespace

Layout<3> BatchLayout(TensorView a, TensorView b, TensorView out, std::int64_t out_matrix,
                      std::int64_t a_matrix, std::int64_t b_matrix) {
  const int a_rank = std::max(0, a.ndim() - 2);
  const int b_rank = std::max(0, b.ndim() - 2);
  const int rank = std::max(a_rank, b_rank);
  Dims dims, of_out, of_a, of_b;
  for (int i = rank - 1; i >= 0; --i) {
    const int ai = i - (rank - a_rank);
    const int bi = i - (rank - b_rank);
    const std::int64_t dim = out.dim(i);
    dims.insert(0, dim);
    of_out.insert(0, out_matrix);
    of_a.insert(0, ai >= 0 && a.dim(ai) != 1 ? a_matrix : 0);
    of_b.insert(0, bi >= 0 && b.dim(bi) != 1 ? b_matrix : 0);
    out_matrix = Times(out_matrix, dim);
    if (ai >= 0) a_matrix = Times(a_matrix, a.dim(ai));
    if (bi >= 0) b_matrix = Times(b_matrix, b.dim(bi));
  }
  Layout<3> layout;
  for (int i = 0; i < rank; ++i) layout.Append(dims[i], {of_out[i], of_a[i], of_b[i]});
  layout.Finish();
  return layout;
}

namespace {

// The products of `count` rows with a vector of k elements.
void MultiplyRows(const float* a, std::int64_t row, std::int64_t count, const float* b, std::int64_t k,
                  float* to) {
  BestVectorMath().dots(a, row, count, b, k, to);
}
template <typename T>
void MultiplyRows(const T* a, std::int64_t row, std::int64_t count, const T* b, std::int64_t k, T* to) {
  WideLoop([=] {
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<T>(EinsumRows<T, true>{a + i * row, b, 1, 1}.Sum(k));
  });
}

// By one column, which lies in one piece: a product of two vectors for each row, where panels would compute
// with one lane in sixteen.
template <typename T>
Status MultiplyByColumns(const MatrixProducts<T>& products) {
  const std::int64_t m = products.m, k = products.k;
  const Layout<3>& batches = products.batches;
  const std::int64_t rows = Times(batches.rows(), batches.inner(), m);
  return ParallelFor(rows, GrainOf(4 * kGrain, k), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    while (begin < end && !pace.stopped()) {
      std::int64_t offsets[3] = {}, batch = begin / m;
      for (int i = batches.rank - 1; i >= 0; batch /= batches.dims[i--]) {
        for (int o = 0; o < 3; ++o) offsets[o] += batch % batches.dims[i] * batches.strides[i][o];
      }
      const std::int64_t first = begin % m, count = std::min(m - first, end - begin);
      const T* a = products.a.data + offsets[1] + first * products.a.row;
      static_cast<void>(pace.For(count, k, [&](std::int64_t i, std::int64_t last) {
        MultiplyRows(a + i * products.a.row, products.a.row, last - i, products.b.data + offsets[2], k,
                     products.out + offsets[0] + first + i);
      }));
      begin += count;
    }
  });
}

}  // namespace

template <typename T>
Status Multiply(const MatrixProducts<T>& of) {
  if constexpr (!std::is_same_v<T, double>) {
    if (of.n == 1 && of.b.row == 1 && of.out_row == 1 && of.k <= kPace) return MultiplyByColumns(of);
  }
  if constexpr (std::is_same_v<T, float>) {
    constexpr std::int64_t kTiny = 512;  // a panel is packed on the stack, so small batched products gain
    if (PacksMatrix(of.m, of.n, of.k, kTiny))
      return MultiplyByPanels({of.m, of.n, of.k, of.a, of.b, of.out, of.out_row, false}, of.batches);
  }
  const std::int64_t count = Times(of.batches.rows(), of.batches.inner());
  if (Status s = FillAll(of.out, Times(count, of.m, of.n), T{0}); !s.ok()) return s;
  GemmScratch<T> scratch;
  Status status;
  const std::int64_t* steps = of.batches.inner_strides();
  Status all = ForAllRows(of.batches, [&](const std::int64_t* offsets, std::int64_t run) {
    for (std::int64_t i = 0; i < run && status.ok(); ++i) {
      const Matrix<T> a{of.a.data + offsets[1] + i * steps[1], of.a.row, 1};
      const Matrix<T> b{of.b.data + offsets[2] + i * steps[2], of.b.row, 1};
      T* const out = of.out + offsets[0] + i * steps[0];
      status = Gemm<T>(of.m, of.n, of.k, a, b, out, of.out_row, scratch);
    }
  });
  return status.ok() ? std::move(all) : std::move(status);
}
template Status Multiply(const MatrixProducts<float>&);
template Status Multiply(const MatrixProducts<double>&);
template Status Multiply(const MatrixProducts<std::int32_t>&);
template Status Multiply(const MatrixProducts<std::int64_t>&);

Status MatMulInto(TensorView a, TensorView b, TensorView out) {
  return ForType(MatrixTypes(), "a", a,
                 [&](auto tag) { return MatMul::Run<typename decltype(tag)::type>(a, b, out); });
}

// The rows of all batches: they are one product where b has no batches. Floats are multiplied by panels,
// which takes none.
bool DeclareMatMul(WorkspaceSizes& sizes, DLDataType dtype) {
  const DLTensor *a = sizes.Tensor(0, 1), *b = sizes.Tensor(1, 1);
  if (a == nullptr || b == nullptr) return false;
  if (SameDType(dtype, DTypeOf<float>())) return true;
  const std::int64_t rows = SizeOf(a) / std::max<std::int64_t>(1, LastDim(a));
  sizes.TakeGemm(rows, b->ndim == 1 ? 1 : LastDim(b), LastDim(a), dtype);
  return true;
}

std::span<const Kernel> MatMulKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Dense>(
          "x, w, bias? -> out", "f32 f64 i32 i64", "transpose_w = 1",
          "x [..., K] times w [N, K] transposed, or w [K, N] with transpose_w = 0, plus bias [N]"),
      Describe<GemmKernel>(
          "a, b, c? -> out", "f32 f64 i32 i64", "alpha = 1.0, beta = 1.0, transA = 0, transB = 0",
          "alpha * a b + beta * c with a and b transposed on demand; c broadcasts to [M, N]"),
      Describe<MatMul>(
          "a, b -> out", "f32 f64 i32 i64", "",
          "numpy's matmul: leading dimensions broadcast, rank 1 is a row on the left, a column on the "
          "right"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
