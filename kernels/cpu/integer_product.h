// SPDX-License-Identifier: Apache-2.0
// What the kernels that multiply by packed integer weights have in common: their arguments, and the vectors
// by column that the panel kernel reads.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/integer_panels.h"
#include "kernels/cpu/workspace_sizes.h"

namespace rewire::kernel::cpu {

// Attributes: `activation`, `alpha` and `beta` of floats; `zero`, `least` and `most` of integers.
struct IntegerFinishAttributes {
  Activation activation;
  std::int64_t zero = 0;
  std::optional<std::int64_t> least, most;

  Status Read(Attributes& attributes);
};

// The tensors of a call but x and out.
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

  // x is u8 or i8, w [PackedColumns(columns), packed_depth] for rows of `depth` bytes in all. Takes what
  // Declare says. The message names what does not fit.
  Status Prepare(const IntegerFinishAttributes& attributes, TensorView x, const IntegerOperands& operands,
                 std::int64_t columns, std::int64_t depth, std::int64_t packed_depth, TensorView out);
  static void Declare(WorkspaceSizes& sizes, std::int64_t columns);

  // The tile's fields for one panel, but for rows and out.
  IntegerTile Panel(std::int64_t panel, std::int64_t segments, std::int64_t depth) const;
};

// Where element i of a contiguous tensor lies, whatever its dtype.
inline void* ElementAt(TensorView tensor, std::int64_t i) {
  return static_cast<char*>(tensor.raw_data()) + i * tensor.element_bytes();
}

// Signed bytes become unsigned ones 128 higher, which the panel kernel reads; unsigned ones are copied.
void CopyUnsigned(const std::uint8_t* from, std::int64_t count, bool is_signed, std::uint8_t* to);

}  // namespace rewire::kernel::cpu
