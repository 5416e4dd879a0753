// SPDX-License-Identifier: Apache-2.0
//
// Kernels that multiply by packed integer weights share their arguments, and the vectors by column that the
// panel kernel reads.
#pragma once

#include <cstdint>
#include <optional>

#include "rewire/kernels/cpu/product/integer_panels.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// Attributes: `activation`, `alpha` and `beta` of floats; `zero`, `least` and `most` of integers.
struct IntegerFinishAttributes {
  Activation activation;
  std::int64_t zero = 0;
  std::optional<std::int64_t> least, most;

  Status Read(Attributes& attributes);
};

// The tensors of a call, except x and out.
struct IntegerOperands {
  TensorView w;     // i8, packed
  TensorView sums;  // i32[columns], of each column of w
  std::optional<TensorView> x_zero, w_zero, scale, bias;
};

// A product by packed weights, once its arguments are checked.
struct IntegerProduct {
  std::int64_t columns;
  const std::int8_t* w;
  std::int32_t x_zero;  // of x in unsigned bytes
  const std::int32_t *start, *w_zero;
  IntegerFinish finish;

  // x is u8 or i8. w is [PackedColumns(columns), packed_depth] for rows of `depth` bytes in all. Takes the
  // workspace that Declare declares. An error names what does not match.
  Status Prepare(const IntegerFinishAttributes& attributes, TensorView x, const IntegerOperands& operands,
                 std::int64_t columns, std::int64_t depth, std::int64_t packed_depth, TensorView out);
  static void Declare(WorkspaceSizes& sizes, std::int64_t columns);

  // The tile for one panel, except rows and out.
  IntegerTile Panel(std::int64_t panel, std::int64_t segments, std::int64_t depth) const;
};

// The sums of a block's rows, which a thread computes once for all panels by which it multiplies the block.
class SumsOfRows {
 public:
  static constexpr std::int64_t kMostRows = 512;

  // If they are not wanted, nothing is computed.
  explicit SumsOfRows(bool wanted) : wanted_(wanted) {}
  // Sums `count` rows of `depth` bytes, unless they are the rows of the call before.
  void Take(const std::uint8_t* rows, std::int64_t count, std::int64_t depth, Pace& pace);
  // The sums from row i on; null if they are not wanted.
  const std::int32_t* From(std::int64_t i) const { return wanted_ ? sums_ + i : nullptr; }

 private:
  const bool wanted_;
  const std::uint8_t* taken_ = nullptr;
  std::int32_t sums_[kMostRows];
};

// The address of element i of a contiguous tensor of any dtype.
inline void* ElementAt(TensorView tensor, std::int64_t i) {
  return static_cast<char*>(tensor.raw_data()) + i * tensor.element_bytes();
}

// Converts signed bytes to unsigned ones by adding 128, as the panel kernel reads them. Unsigned bytes are
// copied.
void CopyUnsigned(const std::uint8_t* from, std::int64_t count, bool is_signed, std::uint8_t* to);

}  // namespace rewire::kernel::cpu
