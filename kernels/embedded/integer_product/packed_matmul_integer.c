// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_packed_matmul_integer_bytes(const struct rewire_embedded_packed_matmul_integer* p,
                                                 const void* x, const int8_t* w, const void* x_zero,
                                                 const int8_t* w_zero, const float* scale,
                                                 const int32_t* whole_bias, const float* bias,
                                                 void* workspace, void* out) {
  const int32_t depth = (p->depth + 3) & ~3;
  const struct rewire_embedded_integer_product product = {&p->finish, w,    w_zero, scale,
                                                          whole_bias, bias, depth,  p->columns};
  const int32_t flip = p->finish.x_is_signed ? 0x80 : 0;
  const int32_t zero = rewire_embedded_zero_of(p->finish.x_is_signed, x_zero);
  const uint8_t* from = (const uint8_t*)x;
  int16_t* const row = (int16_t*)workspace;
  for (int32_t i = 0; i < p->rows; ++i) {
    for (int32_t k = 0; k < depth; ++k) row[k] = (int16_t)(k < p->depth ? (*from++ ^ flip) - zero : 0);
    rewire_embedded_integer_panels(&product, row, out, i * p->columns);
  }
}
