// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by cuBLASLt.
#pragma once

#include <cstdint>
#include <optional>

#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::cuda_libraries {

enum class Activation : std::int32_t { kNone, kRelu, kGelu };  // kGelu: by tanh

// out [batch, m, n] = activation(alpha * a [batch, m, k] b [batch, k, n] + beta * c), in rows. A matrix is
// transposed if its columns lie one behind the other. Steps count elements.
struct Product {
  std::int32_t m = 0, n = 0, k = 0;
  std::int32_t a_transposed = 0, b_transposed = 0;
  std::int64_t batch = 1, a_step = 0, b_step = 0;
  enum : std::int32_t { kNoAddend, kRow, kMatrix };
  std::int32_t addend = kNoAddend;  // kRow: c [n] is added to each row, with beta 1
  Activation activation = Activation::kNone;
  float alpha = 1, beta = 0;

  bool operator==(const Product&) const = default;
};

// All tensors are f32 or all f16, on one CUDA device, dense and checked. *done stays false if cuBLASLt is not
// there or does not take the product. Then nothing was given to the stream.
Status Multiply(const Product& product, TensorView a, TensorView b, const std::optional<TensorView>& c,
                TensorView out, bool* done);

}  // namespace rewire::kernel::cuda_libraries
