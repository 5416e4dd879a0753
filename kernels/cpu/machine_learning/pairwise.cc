// SPDX-License-Identifier: Apache-2.0
//
// Support vector machines and nearest neighbors compute this of pairs: distances of rows, and the
// probabilities of classes from those of each two.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/machine_learning.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct SquaredDistance {
  static constexpr const char* kName = names::kSquaredDistance;
  Status operator()(TensorView x, TensorView y, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "y", y, out).Rank("x", x, 2).Rank("y", y, 2);
    checks.SameDType("y", y, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    const std::int64_t of_y[] = {y.dim(0), x.dim(1)};
    if (Status s = CheckShape("y", y, ShapeView(of_y, 2)); !s.ok()) return s;
    const std::int64_t of_out[] = {x.dim(0), y.dim(0)};
    if (Status s = CheckShape("out", out, ShapeView(of_out, 2)); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      const std::int64_t width = x.dim(1), columns = y.dim(0);
      return ParallelFor(out.size(), GrainOf(kGrain, width),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end && pace.Spend(2); ++i) {
                             const T* a = x.data<T>() + i / columns * width;
                             const T* b = y.data<T>() + i % columns * width;
                             T sum = 0;
                             const bool done = pace.For(width, 1, [&](std::int64_t k, std::int64_t last) {
                               for (; k < last; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
                             });
                             if (!done) return;
                             out.data<T>()[i] = sum;
                           }
                         });
    });
  }
};

// Wu, Lin and Weng's second method: the p that minimizes the sum over pairs of (r[j][i] p[i] - r[i][j] p[j])
// squared. It is found by turns over the classes.
struct PairwiseCoupling {
  static constexpr const char* kName = names::kPairwiseCoupling;
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Rank("x", x, 2).Rank("out", out, 2).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<float>()) return WrongDType(Types<float>(), "x", x);
    if (!out.Is<float>()) return WrongDType(Types<float>(), "out", out);
    const std::int64_t classes = out.dim(1);
    if (classes < 2 || out.dim(0) != x.dim(0) || Times(classes, classes - 1) != Times(2, x.dim(1)))
      return ValueError("out has shape ", out.dims(), " with x of shape ", x.dims(),
                        ", expected [N, classes] with a column of x for each pair of at least 2 classes");
    double* memory = nullptr;
    if (Status s = Workspace(Elements(classes), &memory); !s.ok()) return s;
    Pace pace;
    for (std::int64_t row = 0; row < x.dim(0); ++row) {
      if (!Couple(x.data<float>() + row * x.dim(1), classes, memory, out.data<float>() + row * classes, pace))
        return Stopped();
    }
    return Status();
  }
  static bool DeclareWorkspace(WorkspaceSizes& sizes) {
    const DLTensor* out = sizes.Tensor(-1, 2);
    if (out == nullptr) return false;
    sizes.Take(Elements(out->shape[1]), sizeof(double));
    return true;
  }

 private:
  static std::int64_t Elements(std::int64_t classes) { return Times(classes, Plus(classes, 2)); }

  // False if told to stop.
  static bool Couple(const float* pairs, std::int64_t classes, double* memory, float* out, Pace& pace) {
    double* const q = memory;  // [classes, classes]
    double* const p = memory + classes * classes;
    double* const qp = p + classes;
    if (!pace.Fill(q, classes * classes, 0.0)) return false;
    for (std::int64_t i = 0; i < classes; ++i) {
      p[i] = 1.0 / static_cast<double>(classes);
      for (std::int64_t j = i + 1; j < classes; ++j, ++pairs) {
        if (!pace.Spend(4)) return false;
        const double first = static_cast<double>(*pairs), second = 1 - first;
        q[i * classes + i] += second * second;
        q[j * classes + j] += first * first;
        q[i * classes + j] = q[j * classes + i] = -first * second;
      }
    }
    constexpr int kMostTurns = 100;
    for (int turn = 0; turn < kMostTurns; ++turn) {
      double pqp = 0;
      for (std::int64_t i = 0; i < classes; ++i) {
        qp[i] = 0;
        const bool done = pace.For(classes, 1, [&](std::int64_t j, std::int64_t end) {
          for (; j < end; ++j) qp[i] += q[i * classes + j] * p[j];
        });
        if (!done) return false;
        pqp += p[i] * qp[i];
      }
      double error = 0;
      for (std::int64_t i = 0; i < classes && pace.Spend(1); ++i)
        error = std::max(error, std::fabs(qp[i] - pqp));
      if (error < 0.005 / static_cast<double>(classes)) break;
      for (std::int64_t i = 0; i < classes; ++i) {
        const double own = q[i * classes + i];
        const double change = (pqp - qp[i]) / own;
        const double rest = 1 + change;
        p[i] += change;
        pqp = (pqp + change * (change * own + 2 * qp[i])) / rest / rest;
        const bool done = pace.For(classes, 2, [&](std::int64_t j, std::int64_t end) {
          for (; j < end; ++j) {
            qp[j] = (qp[j] + change * q[i * classes + j]) / rest;
            p[j] /= rest;
          }
        });
        if (!done) return false;
      }
    }
    return pace.For(classes, 1, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) out[i] = static_cast<float>(p[i]);
    });
  }
};

}  // namespace

std::span<const Kernel> PairwiseKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<SquaredDistance>(
          "x, y -> out", "f32 f64", "",
          "the squared Euclidean distance of each row of x [N, F] and each of y [M, F], "
          "out [N, M]"),
      Describe<PairwiseCoupling>("x -> out", "f32", "",
                                 "the probabilities of classes, out [N, C], from those of the first of each "
                                 "two, x [N, C (C - 1) / 2], "
                                 "in the order (0, 1), (0, 2), .. (1, 2), ..; by at most 100 turns, until "
                                 "they are exact to 0.005 / C"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
