// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels of products, as kernels of every kind read them. `Given` reads attributes by
// Bool and Float, as kernel::Attributes does.
#pragma once

namespace rewire::contract {

// alpha * a * b + beta * c.
struct GemmAttributes {
  double alpha = 1;
  double beta = 1;
  bool transpose_a = false;
  bool transpose_b = false;

  template <typename Given>
  void Read(Given& given) {
    alpha = given.Float("alpha", 1);
    beta = given.Float("beta", 1);
    transpose_a = given.Bool("transA", false);
    transpose_b = given.Bool("transB", false);
  }
  // Whether this is a * b + c, where b may be transposed.
  bool IsPlain() const { return alpha == 1 && beta == 1 && !transpose_a; }
};

}  // namespace rewire::contract
