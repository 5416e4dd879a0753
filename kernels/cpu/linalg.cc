// SPDX-License-Identifier: Apache-2.0
// Properties of square matrices.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/types.h"

namespace rewire::kernel::cpu {
namespace {

struct Det {
  static constexpr const char kName[] = "rewire.det";
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (x.ndim() < 2 || x.dim(x.ndim() - 1) != x.dim(x.ndim() - 2))
      return ValueError("x has shape ", x.dims(), ", expected [..., N, N]");
    const ShapeView batch(x.dims().data(), static_cast<std::size_t>(x.ndim() - 2));
    if (Status s = CheckShape("out", out, batch); !s.ok()) return s;
    const std::int64_t n = x.dim(x.ndim() - 1);
    double* matrix = nullptr;
    if (Status s = Workspace(std::max<std::int64_t>(1, n * n), &matrix); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const T* from = x.data<T>() + i * n * n;
        for (std::int64_t k = 0; k < n * n; ++k) matrix[k] = static_cast<double>(from[k]);
        out.data<T>()[i] = static_cast<T>(Determinant(matrix, n));
      }
      return Status();
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0, 2);
    if (x == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, Times(LastDim(x), LastDim(x))), sizeof(double));
    return true;
  }

 private:
  // Gaussian elimination with the largest pivot of each column; the matrix is used up.
  static double Determinant(double* a, std::int64_t n) {
    double product = 1;
    for (std::int64_t c = 0; c < n; ++c) {
      std::int64_t pivot = c;
      for (std::int64_t r = c + 1; r < n; ++r) {
        if (std::fabs(a[r * n + c]) > std::fabs(a[pivot * n + c])) pivot = r;
      }
      if (pivot != c) {
        std::swap_ranges(a + c * n, a + (c + 1) * n, a + pivot * n);
        product = -product;
      }
      const double head = a[c * n + c];
      product *= head;
      if (head == 0) return 0;
      for (std::int64_t r = c + 1; r < n; ++r) {
        const double factor = a[r * n + c] / head;
        for (std::int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
      }
    }
    return product;
  }
};

}  // namespace

std::span<const Kernel> LinalgKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Det>("x, out", "f32 f64", "", "the determinants of the matrices x [..., N, N]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
