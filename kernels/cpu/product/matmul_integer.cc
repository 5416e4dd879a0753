// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit integers into exact 32-bit sums, which wrap. The right sides are packed into
// panels of bytes (integer_panels.h) in each call, because only the run knows them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/product/matmul.h"
#include "rewire/kernels/cpu/product/packed_integer_call.h"
#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/product/widened.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

// One block of memory has the panels of all matrices of b, what their columns begin with, the zeros of the
// columns, and the rows of a as unsigned bytes.
struct Sizes {
  std::int64_t panels, starts, zeros, rows;
  std::int64_t all() const { return Plus(Plus(panels, starts), Plus(zeros, rows)); }
};

std::int64_t ToLines(std::int64_t bytes) { return Plus(bytes, 63) / 64 * 64; }

Sizes SizesOf(std::int64_t a_size, std::int64_t matrices, std::int64_t k, std::int64_t n) {
  constexpr std::int64_t kSum = sizeof(std::int32_t);
  return {ToLines(Times(matrices, PackedColumns(n), PaddedDepth(k))), ToLines(Times(matrices, n, kSum)),
          ToLines(Times(n, kSum)), ToLines(Plus(a_size, kQuad))};
}

// The bytes of four successive rows, side by side for each column, all of them signed.
void WriteQuads(const std::uint8_t* from, std::int64_t row, std::int64_t rows, std::int64_t columns,
                std::uint8_t flip, std::uint32_t* to) {
  if (rows == kQuad) {
    const std::uint32_t flips = flip * 0x01010101U;
    WideLoop([=] {
      const std::uint8_t *a = from, *b = from + row, *c = b + row, *d = c + row;
      for (std::int64_t j = 0; j < columns; ++j) {
        to[j] = (std::uint32_t{a[j]} | std::uint32_t{b[j]} << 8 | std::uint32_t{c[j]} << 16 |
                 std::uint32_t{d[j]} << 24) ^
                flips;
      }
    });
    return;
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    to[j] = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      to[j] |= static_cast<std::uint32_t>(from[r * row + j] ^ flip) << (8 * r);
  }
}

class ByteProducts {
 public:
  ByteProducts(TensorView a, TensorView b, TensorView out)
      : a_(static_cast<const std::uint8_t*>(a.raw_data())),
        b_(static_cast<const std::uint8_t*>(b.raw_data())),
        out_(out.data<std::int32_t>()),
        m_(a.dim(a.ndim() - 2)),
        n_(b.dim(b.ndim() - 1)),
        k_(a.dim(a.ndim() - 1)),
        a_size_(a.size()),
        matrices_(b.size() / Times(k_, n_)),
        a_flip_(a.Is<std::int8_t>() ? 0x80 : 0),
        b_flip_(b.Is<std::uint8_t>() ? 0x80 : 0),
        batches_(BatchLayout(a, b, out, Times(m_, n_), Times(m_, k_), Times(k_, n_))) {
    // One b for every a: the rows of all are those of one product.
    one_ = batches_.rank == 1 && batches_.strides[0][2] == 0 && batches_.strides[0][1] == Times(m_, k_);
  }

  Status Run(const std::optional<TensorView>& a_zero, const std::optional<TensorView>& b_zero) {
    const Sizes sizes = SizesOf(a_size_, matrices_, k_, n_);
    std::byte* block = nullptr;
    if (Status s = Workspace(sizes.all(), &block); !s.ok()) return s;
    panels_ = reinterpret_cast<std::uint8_t*>(block);
    starts_ = reinterpret_cast<std::int32_t*>(block + sizes.panels);
    std::int32_t* const zeros = reinterpret_cast<std::int32_t*>(block + sizes.panels + sizes.starts);
    if (Status s = ReadZeros(a_zero, b_zero, zeros); !s.ok()) return s;
    if (Status s = CopyRows(reinterpret_cast<std::uint8_t*>(block + sizes.all() - sizes.rows)); !s.ok())
      return s;
    if (Status s = PackAll(); !s.ok()) return s;
    return MultiplyAll();
  }

 private:
  static std::int32_t ZeroAt(TensorView zero, std::int64_t i) {
    return zero.Is<std::int8_t>() ? std::int32_t{zero.data<std::int8_t>()[i]}
                                  : std::int32_t{zero.data<std::uint8_t>()[i]};
  }

  // Zeros of a count from unsigned bytes, those of b from signed ones.
  Status ReadZeros(const std::optional<TensorView>& a_zero, const std::optional<TensorView>& b_zero,
                   std::int32_t* zeros) {
    if (IsGiven(a_zero) && a_zero->size() != 1)
      row_zeros_ = *a_zero;
    else
      a_zero_ = a_flip_ + (IsGiven(a_zero) ? ZeroAt(*a_zero, 0) : 0);
    if (!IsGiven(b_zero) && b_flip_ == 0) return Status();
    const std::int64_t step = IsGiven(b_zero) && b_zero->size() != 1 ? 1 : 0;
    b_zeros_ = zeros;
    return SerialFor(n_, 1, [&](std::int64_t j, std::int64_t end) {
      for (; j < end; ++j) zeros[j] = (IsGiven(b_zero) ? ZeroAt(*b_zero, j * step) : 0) - b_flip_;
    });
  }

  // Rows are read in whole quads, so there must be memory behind the last one.
  Status CopyRows(std::uint8_t* to) {
    if (a_flip_ == 0 && k_ % kQuad == 0) return Status();
    const std::uint8_t* from = a_;
    a_ = to;
    return ParallelFor(a_size_, 4 * kGrain, [&](std::int64_t begin, std::int64_t end) {
      CopyUnsigned(from + begin, end - begin, a_flip_ != 0, to + begin);
    });
  }

  Status PackAll() {
    const std::int64_t panels = PanelCount(n_);
    return ParallelFor(Times(matrices_, panels), GrainOf(kGrain, k_, kPanelWidth / 4),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           if (!Pack(i / panels, i % panels, pace)) return;
                         }
                       });
  }

  bool Pack(std::int64_t matrix, std::int64_t panel, Pace& pace) const {
    const std::int64_t first = panel * kPanelWidth, width = WidthOfPanel(panel, n_);
    const std::int64_t used = UsedOfPanel(panel, n_);
    const std::uint8_t* from = b_ + matrix * k_ * n_ + first;
    auto* to =
        reinterpret_cast<std::uint32_t*>(panels_ + (matrix * PackedColumns(n_) + first) * PaddedDepth(k_));
    std::int32_t sums[kPanelWidth] = {};
    const bool sums_columns = a_zero_ != 0 || row_zeros_;
    const bool done = pace.For(PaddedDepth(k_) / kQuad, width, [&](std::int64_t q, std::int64_t end) {
      for (; q < end; ++q) {
        const std::int64_t rows = std::min(kQuad, k_ - q * kQuad);
        const std::uint8_t* quad = from + q * kQuad * n_;
        WriteQuads(quad, n_, rows, used, b_flip_, to + q * width);
        std::fill(to + q * width + used, to + (q + 1) * width, 0U);
        if (sums_columns) AddRows(quad, rows, used, sums);
      }
    });
    if (!done) return false;
    // (a - a_zero) (b - b_zero) summed up is a b - b_zero (sum of a) - a_zero (sum of b - b_zero). As
    // unsigned numbers, since sums wrap.
    for (std::int64_t j = 0; j < used; ++j) {
      auto sum = static_cast<std::uint32_t>(sums[j]);
      if (b_zeros_ != nullptr)
        sum -= static_cast<std::uint32_t>(k_) * static_cast<std::uint32_t>(b_zeros_[first + j]);
      const std::uint32_t start = row_zeros_ ? sum : 0U - static_cast<std::uint32_t>(a_zero_) * sum;
      starts_[matrix * n_ + first + j] = static_cast<std::int32_t>(start);
    }
    return true;
  }

  void AddRows(const std::uint8_t* from, std::int64_t rows, std::int64_t columns, std::int32_t* sums) const {
    WideLoop([=, this] {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t j = 0; j < columns; ++j)
          sums[j] += static_cast<std::int8_t>(from[r * n_ + j] ^ b_flip_);
      }
    });
  }

  Status MultiplyAll() const {
    constexpr std::int64_t kBlock = 262144;     // bytes that stay in the second cache
    constexpr std::int64_t kTaskWork = 524288;  // products that are worth a thread's while
    const std::int64_t count = Times(batches_.rows(), batches_.inner());
    const std::int64_t products = one_ ? 1 : count, rows = one_ ? Times(count, m_) : m_;
    const std::int64_t panels = PanelCount(n_);
    const std::int64_t block = RowsOfBlock(
        rows, 64, std::min(kBlock / std::max<std::int64_t>(1, k_), SumsOfRows::kMostRows), panels);
    const std::int64_t blocks = (rows + block - 1) / block;
    return ParallelFor(Times(products, blocks, panels),
                       GrainOf(kTaskWork, std::min(rows, block), Plus(k_, kIntegerSumWork), kPanelWidth),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         SumsOfRows sums(b_zeros_ != nullptr && panels > 1);
                         for (std::int64_t task = begin; task < end && !pace.stopped(); ++task) {
                           const std::int64_t first = task / panels % blocks * block;
                           Multiply(task / panels / blocks, task % panels, first,
                                    std::min(rows, first + block), sums, pace);
                         }
                       });
  }

  // Rows [begin, end) of a product by one panel.
  void Multiply(std::int64_t number, std::int64_t panel, std::int64_t begin, std::int64_t end,
                SumsOfRows& of_rows, Pace& pace) const {
    std::int64_t offsets[3] = {};
    for (int i = batches_.rank - 1; i >= 0; number /= batches_.dims[i--]) {
      for (int o = 0; o < 3; ++o) offsets[o] += number % batches_.dims[i] * batches_.strides[i][o];
    }
    const std::int64_t matrix = offsets[2] / (k_ * n_);
    constexpr std::int32_t kNone[kPanelWidth] = {};
    IntegerProduct product{};
    product.columns = n_;
    product.w = reinterpret_cast<const std::int8_t*>(panels_) + matrix * PackedColumns(n_) * PaddedDepth(k_);
    product.start = starts_ + matrix * n_;
    product.w_zero = b_zeros_;
    const IntegerPanelKernel& kernel = BestIntegerPanelKernel();
    const std::uint8_t* pointers[kMostPanelRows];
    IntegerTile tile = product.Panel(panel, 1, k_);
    const std::int32_t* sums = tile.start;
    if (row_zeros_) tile.start = kNone;
    tile.rows = pointers;
    std::int32_t* const out = out_ + offsets[0] + panel * kPanelWidth;
    of_rows.Take(a_ + offsets[1] + begin * k_, end - begin, k_, pace);
    for (std::int64_t i = begin; i < end; i += tile.count) {
      tile.count = RowsOfTile(end - i, kernel.rows);
      if (!pace.Spend(ProductsOf(tile.count, k_))) return;
      for (int r = 0; r < tile.count; ++r) pointers[r] = a_ + offsets[1] + (i + r) * k_;
      tile.row_sums = of_rows.From(i - begin);
      tile.out = out + i * n_;
      kernel.run(tile);
      for (int r = 0; row_zeros_ && r < tile.count; ++r)
        SubtractRowZero((i + r) % m_, sums, tile.columns, out + (i + r) * n_);
    }
  }

  void SubtractRowZero(std::int64_t row, const std::int32_t* sums, std::int64_t columns,
                       std::int32_t* out) const {
    const auto zero = static_cast<std::uint32_t>(a_flip_ + ZeroAt(*row_zeros_, row));
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::uint32_t shift = zero * static_cast<std::uint32_t>(sums[j]);
      out[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(out[j]) - shift);
    }
  }

  const std::uint8_t *a_, *b_;
  std::int32_t* out_;
  std::int64_t m_, n_, k_, a_size_, matrices_;
  std::uint8_t a_flip_, b_flip_;  // what makes bytes of a unsigned, and bytes of b signed
  Layout<3> batches_;
  bool one_ = false;
  std::uint8_t* panels_ = nullptr;
  std::int32_t* starts_ = nullptr;  // of each column of each matrix; with row_zeros_ the columns' sums
  std::int32_t a_zero_ = 0;
  std::optional<TensorView> row_zeros_;    // in place of a_zero_
  const std::int32_t* b_zeros_ = nullptr;  // of each column; null: zeros
};

// a and b are u8 or i8 of rank 2 and more. A zero has one element, or one for each row of a matrix of a, or
// for each column of b.
Status MultiplyBytes(TensorView a, const std::optional<TensorView>& a_zero, TensorView b,
                     const std::optional<TensorView>& b_zero, TensorView out) {
  if (out.size() == 0) return Status();
  if (a.dim(a.ndim() - 1) == 0) return FillAll(out.data<std::int32_t>(), out.size(), 0);
  return ByteProducts(a, b, out).Run(a_zero, b_zero);
}

void DeclareByteProducts(WorkspaceSizes& sizes, const DLTensor& a, const DLTensor& b) {
  const std::int64_t k = LastDim(&a), n = LastDim(&b);
  std::int64_t matrices = 1;
  for (int i = 0; i < b.ndim - 2; ++i) matrices = Times(matrices, b.shape[i]);
  sizes.Take(SizesOf(SizeOf(&a), matrices, k, n).all(), 1);
}

using Bytes = Types<std::uint8_t, std::int8_t>;

// Vectors are multiplied as 32-bit integers.
struct MatMulInteger {
  static constexpr const char* kName = names::kMatMulInteger;
  Status operator()(TensorView a, TensorView b, std::optional<TensorView> a_zero,
                    std::optional<TensorView> b_zero, TensorView out) const {
    Checks checks;
    checks.Operands("a", a, "b", b, out);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out.Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), "out", out);
    Dims expected;
    if (Status s = MatMulDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (a.ndim() >= 2 && b.ndim() >= 2) {
      for (const auto& [name, tensor] : {std::pair("a", a), std::pair("b", b)}) {
        if (!tensor.Is<std::uint8_t>() && !tensor.Is<std::int8_t>()) return WrongDType(Bytes(), name, tensor);
      }
      if (Status s = CheckZeroOf("a", a, "a_zero", a_zero, a.ndim() - 2); !s.ok()) return s;
      if (Status s = CheckZeroOf("b", b, "b_zero", b_zero, b.ndim() - 1); !s.ok()) return s;
      return MultiplyBytes(a, a_zero, b, b_zero, out);
    }
    Widened left, right;
    if (Status s = left.Make("a", a, "a_zero", a_zero, std::max(0, a.ndim() - 2)); !s.ok()) return s;
    if (Status s = right.Make("b", b, "b_zero", b_zero, b.ndim() - 1); !s.ok()) return s;
    return MatMulInto(left.view(), right.view(), out);
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *a = sizes.Tensor(0, 2), *b = sizes.Tensor(1, 2);
    if (a != nullptr && b != nullptr) {
      DeclareByteProducts(sizes, *a, *b);
      return true;
    }
    return DeclareWidened(sizes) && DeclareMatMul(sizes, DTypeOf<std::int32_t>());
  }
};

}  // namespace

std::span<const Kernel> IntegerProductKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MatMulInteger>(
          "a, b, a_zero?, b_zero? -> out", "a, a_zero u8 i8; b, b_zero u8 i8; out i32", "",
          "numpy's matmul of a - a_zero and b - b_zero; a zero has one element, or one for "
          "each row of a or column of b"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
