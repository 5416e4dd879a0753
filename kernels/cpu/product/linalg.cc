// SPDX-License-Identifier: Apache-2.0
// Properties of square matrices.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct Det {
  static constexpr const char* kName = names::kDet;
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
    const std::int64_t elements = Times(n, n);
    if (Status s = Workspace(std::max<std::int64_t>(1, elements), &matrix); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      Pace pace;
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const T* from = x.data<T>() + i * elements;
        const auto load = [&](std::int64_t k, std::int64_t end) {
          for (; k < end; ++k) matrix[k] = static_cast<double>(from[k]);
        };
        if (!pace.Spend(4) || !pace.For(elements, 1, load)) return Stopped();
        out.data<T>()[i] = static_cast<T>(Determinant(matrix, n, pace));
      }
      return pace.status();
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0, 2);
    if (x == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, Times(LastDim(x), LastDim(x))), sizeof(double));
    return true;
  }

 private:
  // Gaussian elimination with the largest pivot of each column; the matrix is used up. Any number when told
  // to stop.
  static double Determinant(double* a, std::int64_t n, Pace& pace) {
    double product = 1;
    for (std::int64_t c = 0; c < n; ++c) {
      std::int64_t pivot = c;
      if (!pace.Spend(n)) return 0;
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
        if (!pace.Spend(n - c)) return 0;
        for (std::int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
      }
    }
    return product;
  }
};

}  // namespace

std::span<const Kernel> LinalgKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Det>("x -> out", "f32 f64", "", "the determinants of the matrices x [..., N, N]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
