// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows by weights of 4 or 8 bits with a scale for each block of a column (blocked_panels.h). The
// weights stay packed: few rows multiply them as they are, and many rows share weights that are expanded for
// them, a piece that the caches hold at a time. A row has the same sums alone and with any others, so a text
// that a decoder continues does not depend on the texts that a server runs beside it.
#include <algorithm>
#include <optional>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/product/blocked_bits.h"
#include "rewire/kernels/cpu/product/blocked_panels.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct BlockedMatMul {
  static constexpr const char* kName = names::kBlockedMatMul;
  std::int64_t columns = 1, block = kBlockedRows, bits = 4;
  bool bytes = false;
  static Status Make(Attributes& attributes, BlockedMatMul* matmul) {
    attributes.Require("columns");
    attributes.Require("block");
    matmul->columns = attributes.Int("columns", 1, 1, kMostColumns);
    matmul->block = attributes.Int("block", kBlockedRows, kBlockedRows, kMostBlockedRows);
    matmul->bytes = attributes.Bool("bytes", false);
    matmul->bits = attributes.Int("bits", 4, 4, 8);
    if (matmul->block % kBlockedRows != 0)
      return ValueError("block is ", matmul->block, ", expected a multiple of ", kBlockedRows);
    return CheckBlockedBits(matmul->bits);
  }

  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0);
    if (x == nullptr) return false;
    if (!bytes) return true;
    const std::int64_t size = SizeOf(x), blocks = Plus(size / block, 1);
    if (BestBlockedKernels().multiply_bytes != nullptr)
      sizes.Take(Plus(size, Times(blocks, 8)), 1);
    else
      sizes.Take(size, sizeof(float));
    return true;
  }

  Status operator()(TensorView x, TensorView w, TensorView scales, std::optional<TensorView> offsets,
                    std::optional<TensorView> bias, std::optional<TensorView> addend, TensorView out) const;

 private:
  Status Check(TensorView x, TensorView w, TensorView scales, const std::optional<TensorView>& offsets,
               TensorView out) const;
};

Status BlockedMatMul::Check(TensorView x, TensorView w, TensorView scales,
                            const std::optional<TensorView>& offsets, TensorView out) const {
  Checks checks;
  checks.Operands("x", x, "w", w, out).SameDType("out", out, "x", x);
  checks.Dense("scales", scales).NoOverlap("out", out, "scales", scales);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (!x.Is<float>()) return WrongDType(Types<float>(), "x", x);
  if (!w.Is<std::uint8_t>()) return WrongDType(Types<std::uint8_t>(), "w", w);
  if (!scales.Is<float>() && !scales.Is<Float16>())
    return WrongDType(Types<float, Float16>(), "scales", scales);
  if (x.ndim() < 1) return ValueError("x is a scalar, expected [..., K]");
  const std::int64_t depth = x.dim(x.ndim() - 1);
  if (depth % block != 0)
    return ValueError("x has shape ", x.dims(), ": ", depth,
                      " rows of weights are no multiple of the block, ", block);
  const std::int64_t packed[] = {BlockedPanels(columns), Times(depth, kBlockedWidth * bits / 8)};
  const std::int64_t terms[] = {packed[0], depth / block, kBlockedWidth};
  Dims expected(x.dims());
  expected[x.ndim() - 1] = columns;
  checks.Shape("w", w, ShapeView(packed, 2)).Shape("scales", scales, ShapeView(terms, 3));
  checks.Shape("out", out, expected.view());
  if (IsGiven(offsets)) {
    checks.Dense("offsets", *offsets).SameDType("offsets", *offsets, "x", x);
    checks.Shape("offsets", *offsets, ShapeView(terms, 3)).NoOverlap("out", out, "offsets", *offsets);
  }
  return checks.Take();
}

// One call, once its arguments are checked.
class BlockedProduct {
 public:
  BlockedProduct(TensorView x, std::int64_t columns, const BlockedPanel& panels, const float* bias,
                 const float* addend, TensorView out)
      : x_(x.data<float>()),
        columns_(columns),
        rows_(out.size() / columns),
        depth_(panels.depth),
        blocks_(panels.blocks()),
        panels_(panels),
        bias_(bias),
        addend_(addend),
        out_(out.data<float>()) {}

  Status Run(bool bytes) {
    if (rows_ == 0) return Status();
    if (bytes && kernels_.multiply_bytes != nullptr) return RunBytes();
    if (bytes) {
      if (Status s = RoundRows(); !s.ok()) return s;
    }
    return rows_ < kernels_.rows_to_expand ? RunRows() : RunExpanded();
  }

 private:
  static constexpr std::int64_t kTaskWork = 65536;  // products that are worth a thread's while
  static constexpr std::int64_t kGroupWidth = kMostBlockedPanels * kBlockedWidth;

  void Store(std::int64_t row, std::int64_t panel, const float* sums) const {
    const std::int64_t first = panel * kBlockedWidth, at = row * columns_ + first;
    const std::int64_t used = std::min(kBlockedWidth, columns_ - first);
    for (std::int64_t j = 0; j < used; ++j) {
      float sum = sums[j];
      if (bias_ != nullptr) sum += bias_[first + j];
      if (addend_ != nullptr) sum += addend_[at + j];
      out_[at + j] = sum;
    }
  }

  // Calls run(number, pace) for each group of so many panels, until it returns false.
  template <typename Body>
  Status ForPanels(std::int64_t of_group, const Body& run) const {
    return ParallelFor((BlockedPanels(columns_) + of_group - 1) / of_group,
                       GrainOf(kTaskWork, rows_, depth_, of_group * kBlockedWidth),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           if (!run(i, pace)) return;
                         }
                       });
  }

  Status RunBytes() {
    const std::int64_t terms = Times(rows_, blocks_);
    std::int8_t* bytes = nullptr;
    if (Status s = Workspace(Plus(Times(rows_, depth_), Times(terms, 8)), &bytes); !s.ok()) return s;
    auto* scales = reinterpret_cast<float*>(bytes + rows_ * depth_);
    auto* sums = reinterpret_cast<std::int32_t*>(scales + terms);
    Status quantized =
        ParallelFor(rows_, GrainOf(kGrain, depth_), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (std::int64_t i = begin; i < end; ++i) {
            if (!pace.Spend(depth_)) return;
            kernels_.quantize(x_ + i * depth_, depth_, panels_.block, bytes + i * depth_,
                              scales + i * blocks_, sums + i * blocks_);
          }
        });
    if (!quantized.ok()) return quantized;
    return ForPanels(1, [&](std::int64_t i, Pace& pace) {
      const BlockedPanel panel = panels_.Next(i);
      for (std::int64_t row = 0; row < rows_; row += kMostBlockedCount) {
        const int count = static_cast<int>(std::min<std::int64_t>(kMostBlockedCount, rows_ - row));
        if (!pace.Spend(16 + 2 * count * depth_)) return false;
        BlockedBytesRow rows[kMostBlockedCount];
        for (int r = 0; r < count; ++r)
          rows[r] = {bytes + (row + r) * depth_, scales + (row + r) * blocks_, sums + (row + r) * blocks_};
        float out[kMostBlockedCount * kBlockedWidth];
        kernels_.multiply_bytes(panel, rows, count, out);
        for (int r = 0; r < count; ++r) Store(row + r, i, out + r * kBlockedWidth);
      }
      return true;
    });
  }

  // Rounds the rows as quantizing does, for a CPU that multiplies bytes no faster than floats.
  Status RoundRows() {
    float* rounded = nullptr;
    if (Status s = Workspace(Times(rows_, depth_), &rounded); !s.ok()) return s;
    const float* x = x_;
    const std::int64_t block = panels_.block;
    x_ = rounded;
    return ParallelFor(Times(rows_, blocks_), GrainOf(kGrain, block),
                       [&, x](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           std::int8_t bytes[kMostBlockedRows];
                           float scale = 0;
                           std::int32_t sum = 0;
                           kernels_.quantize(x + i * block, block, block, bytes, &scale, &sum);
                           for (std::int64_t k = 0; k < block; ++k)
                             rounded[i * block + k] = scale * static_cast<float>(bytes[k]);
                         }
                       });
  }

  Status RunRows() const {
    return ForPanels(kMostBlockedPanels, [&](std::int64_t group, Pace& pace) {
      const std::int64_t first = group * kMostBlockedPanels;
      const BlockedPanel panel = panels_.Next(first);
      BlockedSums sums{};
      sums.panels =
          static_cast<int>(std::min<std::int64_t>(kMostBlockedPanels, BlockedPanels(columns_) - first));
      const std::int64_t column = first * kBlockedWidth, width = sums.panels * kBlockedWidth;
      const std::int64_t used = std::min(width, columns_ - column);
      // Copies, because the last panel may have more columns than there are.
      float bias[kGroupWidth] = {}, addend[kMostBlockedCount * kGroupWidth] = {};
      float out[kMostBlockedCount * kGroupWidth];
      if (bias_ != nullptr) std::copy_n(bias_ + column, used, bias);
      sums.bias = bias_ == nullptr ? nullptr : bias;
      sums.addend = addend_ == nullptr ? nullptr : addend;
      sums.out = out;
      for (std::int64_t row = 0; row < rows_; row += kMostBlockedCount) {
        const int count = static_cast<int>(std::min<std::int64_t>(kMostBlockedCount, rows_ - row));
        if (!pace.Spend(64 + 16 * count * depth_)) return false;
        const float* rows[kMostBlockedCount];
        for (int r = 0; r < count; ++r) {
          rows[r] = x_ + (row + r) * depth_;
          if (addend_ != nullptr)
            std::copy_n(addend_ + (row + r) * columns_ + column, used, addend + r * width);
        }
        kernels_.multiply(panel, rows, count, sums);
        for (int r = 0; r < count; ++r)
          std::copy_n(out + r * width, used, out_ + (row + r) * columns_ + column);
      }
      return true;
    });
  }

  // Two panels at a time, which make one of the product of floats.
  Status RunExpanded() const {
    const std::int64_t pairs = (columns_ + kPanelWidth - 1) / kPanelWidth;
    return ParallelFor(pairs, GrainOf(kTaskWork, rows_, depth_, kPanelWidth),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           if (!ExpandPair(i, pace)) return;
                         }
                       });
  }

  bool ExpandPair(std::int64_t pair, Pace& pace) const {
    alignas(64) float expanded[kBlockedSegment * kPanelWidth];
    const std::int64_t column = pair * kPanelWidth, width = WidthOfPanel(pair, columns_);
    const PanelKernel& kernel = BestPanelKernel();
    const float* rows[kMostPanelRows];
    PanelTile tile{};
    tile.rows = rows;
    tile.segments = 1;
    tile.panel = expanded;
    tile.columns = UsedOfPanel(pair, columns_);
    tile.step = columns_;
    std::int64_t first = 0;
    do {
      tile.depth = std::min(kBlockedSegment, depth_ - first);
      if (!pace.Spend(tile.depth * 8)) return false;
      for (std::int64_t half = 0; half < width / kBlockedWidth; ++half)
        kernels_.expand(panels_.Next(pair * 2 + half), first, tile.depth, expanded + half * kBlockedWidth,
                        width);
      tile.bias = first == 0 && bias_ != nullptr ? bias_ + column : nullptr;
      for (std::int64_t row = 0; row < rows_; row += tile.count) {
        tile.count = RowsOfTile(rows_ - row, kernel.rows);
        if (!pace.Spend(ProductsOf(std::max(tile.count, kRowsInOneOrder), tile.depth))) return false;
        for (int r = 0; r < tile.count; ++r) rows[r] = x_ + (row + r) * depth_ + first;
        const std::int64_t at = row * columns_ + column;
        tile.addend = first > 0 ? out_ + at : addend_ != nullptr ? addend_ + at : nullptr;
        tile.out = out_ + at;
        if (tile.count < kRowsInOneOrder)
          RunShort(tile);
        else
          kernel.run(tile);
      }
      first += tile.depth;
    } while (first < depth_);
    return true;
  }

  // Tiles of few rows add in another order, so the last row stands for those that are missing.
  static void RunShort(const PanelTile& few) {
    const float* rows[kRowsInOneOrder];
    float addend[kRowsInOneOrder * kPanelWidth] = {}, out[kRowsInOneOrder * kPanelWidth];
    PanelTile tile = few;
    tile.rows = rows;
    tile.count = kRowsInOneOrder;
    tile.step = kPanelWidth;
    tile.out = out;
    for (int r = 0; r < tile.count; ++r) {
      rows[r] = few.rows[std::min(r, few.count - 1)];
      if (few.addend.floats != nullptr && r < few.count)
        std::copy_n(few.addend.floats + r * few.step, few.columns, addend + r * kPanelWidth);
    }
    if (few.addend.floats != nullptr) tile.addend = addend;
    BestPanelKernel().run(tile);
    for (int r = 0; r < few.count; ++r)
      std::copy_n(out + r * kPanelWidth, few.columns, few.out + r * few.step);
  }

  const BlockedKernels& kernels_ = BestBlockedKernels();
  const float* x_;
  std::int64_t columns_, rows_, depth_, blocks_;
  BlockedPanel panels_;  // the first one
  const float *bias_, *addend_;
  float* out_;
};

Status BlockedMatMul::operator()(TensorView x, TensorView w, TensorView scales,
                                 std::optional<TensorView> offsets, std::optional<TensorView> bias,
                                 std::optional<TensorView> addend, TensorView out) const {
  if (Status s = Check(x, w, scales, offsets, out); !s.ok()) return s;
  if (Status s = CheckAdded(bias, addend, columns, out); !s.ok()) return s;
  const std::int64_t depth = x.dim(x.ndim() - 1);
  const BlockedPanel panels = {w.data<std::uint8_t>(),
                               scales.raw_data(),
                               IsGiven(offsets) ? offsets->data<float>() : nullptr,
                               depth,
                               block,
                               static_cast<int>(bits),
                               !scales.Is<float>()};
  return BlockedProduct(x, columns, panels, IsGiven(bias) ? bias->data<float>() : nullptr,
                        IsGiven(addend) ? addend->data<float>() : nullptr, out)
      .Run(bytes);
}

}  // namespace

std::span<const Kernel> BlockedMatMulKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<BlockedMatMul>(
          "x, w, scales, offsets?, bias?, addend? -> out over addend",
          "x, offsets, bias, addend, out f32; w u8; scales f32 f16",
          "columns, block, bits = 4 or 8, bytes = 0",
          "x [..., K] by the weights (code - 2^(bits - 1)) * scale - offset of packed w, with a scale and an "
          "offset for each `block` rows of a column; plus bias [columns], plus addend of out's shape. With "
          "bytes = 1 each block of x is rounded to 127ths of its largest element, and products are those of "
          "integers"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
