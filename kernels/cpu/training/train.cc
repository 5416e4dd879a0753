// SPDX-License-Identifier: Apache-2.0
// Optimizer steps of ONNX' training operators, for one tensor: rate r and step count t are scalars.
#include <cmath>

#include "rewire/kernels/contract/training.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// Reads r and t and checks that all other tensors are alike; outputs may be inputs.
Status CheckStep(TensorView r, TensorView t,
                 std::initializer_list<std::pair<const char*, TensorView>> tensors, double* rate,
                 double* count) {
  if (Status s = ReadNumber("r", r, rate); !s.ok()) return s;
  if (Status s = ReadNumber("t", t, count); !s.ok()) return s;
  const TensorView first = tensors.begin()->second;
  Checks checks;
  for (const auto& [name, tensor] : tensors) {
    checks.Dense(name, tensor).SameDType(name, tensor, "x", first).Shape(name, tensor, first.dims());
    for (const auto& [other_name, other] : tensors) {
      if (other.raw_data() != tensor.raw_data()) checks.NoOverlap(name, tensor, other_name, other);
    }
  }
  return checks.Take();
}

struct Adagrad {
  static constexpr const char* kName = names::kAdagrad;
  double decay = 0, epsilon = 1e-6, norm = 0;
  static Status Make(Attributes& attributes, Adagrad* step) {
    step->decay = attributes.Float("decay_factor", 0);
    step->epsilon = attributes.Float("epsilon", 1e-6);
    step->norm = attributes.Float("norm_coefficient", 0);
    return Status();
  }
  Status operator()(TensorView r, TensorView t, TensorView x, TensorView g, TensorView h, TensorView out_x,
                    TensorView out_h) const {
    double rate = 0, count = 0;
    Status s =
        CheckStep(r, t, {{"x", x}, {"g", g}, {"h", h}, {"out_x", out_x}, {"out_h", out_h}}, &rate, &count);
    if (!s.ok()) return s;
    rate /= 1 + count * decay;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return ParallelFor(x.size(), kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto old = static_cast<double>(x.data<T>()[i]);
          const double gradient = norm * old + static_cast<double>(g.data<T>()[i]);
          const double squares = static_cast<double>(h.data<T>()[i]) + gradient * gradient;
          out_x.data<T>()[i] = static_cast<T>(old - rate * gradient / (std::sqrt(squares) + epsilon));
          out_h.data<T>()[i] = static_cast<T>(squares);
        }
      });
    });
  }
};

struct Adam {
  static constexpr const char* kName = names::kAdam;
  double alpha = 0.9, beta = 0.999, epsilon = 1e-6, norm = 0, norm_post = 0;
  static Status Make(Attributes& attributes, Adam* step) {
    step->alpha = attributes.Float("alpha", 0.9);
    step->beta = attributes.Float("beta", 0.999);
    step->epsilon = attributes.Float("epsilon", 1e-6);
    step->norm = attributes.Float("norm_coefficient", 0);
    step->norm_post = attributes.Float("norm_coefficient_post", 0);
    return Status();
  }
  Status operator()(TensorView r, TensorView t, TensorView x, TensorView g, TensorView v, TensorView h,
                    TensorView out_x, TensorView out_v, TensorView out_h) const {
    double rate = 0, count = 0;
    Status s = CheckStep(
        r, t, {{"x", x}, {"g", g}, {"v", v}, {"h", h}, {"out_x", out_x}, {"out_v", out_v}, {"out_h", out_h}},
        &rate, &count);
    if (!s.ok()) return s;
    if (count > 0) rate *= std::sqrt(1 - std::pow(beta, count)) / (1 - std::pow(alpha, count));
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return ParallelFor(x.size(), kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto old = static_cast<double>(x.data<T>()[i]);
          const double gradient = norm * old + static_cast<double>(g.data<T>()[i]);
          const double mean = alpha * static_cast<double>(v.data<T>()[i]) + (1 - alpha) * gradient;
          const double squares =
              beta * static_cast<double>(h.data<T>()[i]) + (1 - beta) * gradient * gradient;
          const double moved = old - rate * mean / (std::sqrt(squares) + epsilon);
          out_x.data<T>()[i] = static_cast<T>((1 - norm_post) * moved);
          out_v.data<T>()[i] = static_cast<T>(mean);
          out_h.data<T>()[i] = static_cast<T>(squares);
        }
      });
    });
  }
};

struct Momentum {
  static constexpr const char* kName = names::kMomentum;
  double alpha = 0, beta = 0, norm = 0;
  bool nesterov = false;
  static Status Make(Attributes& attributes, Momentum* step) {
    for (const char* name : {"alpha", "beta", "mode", "norm_coefficient"}) attributes.Require(name);
    step->alpha = attributes.Float("alpha", 0);
    step->beta = attributes.Float("beta", 0);
    step->norm = attributes.Float("norm_coefficient", 0);
    step->nesterov = attributes.Choice("mode", {"standard", "nesterov"}, 0) == 1;
    return Status();
  }
  Status operator()(TensorView r, TensorView t, TensorView x, TensorView g, TensorView v, TensorView out_x,
                    TensorView out_v) const {
    double rate = 0, count = 0;
    Status s =
        CheckStep(r, t, {{"x", x}, {"g", g}, {"v", v}, {"out_x", out_x}, {"out_v", out_v}}, &rate, &count);
    if (!s.ok()) return s;
    const double weight = count > 0 ? beta : 1;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return ParallelFor(x.size(), kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto old = static_cast<double>(x.data<T>()[i]);
          const double gradient = norm * old + static_cast<double>(g.data<T>()[i]);
          const double speed = alpha * static_cast<double>(v.data<T>()[i]) + weight * gradient;
          out_x.data<T>()[i] = static_cast<T>(old - rate * (nesterov ? gradient + alpha * speed : speed));
          out_v.data<T>()[i] = static_cast<T>(speed);
        }
      });
    });
  }
};

constexpr const char kTrainTypes[] = "f32 f64; r, t one number";

}  // namespace

std::span<const Kernel> TrainKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Adagrad>("r, t, x, g, h -> out_x over x|g|h, out_h over x|g|h", kTrainTypes,
                        "decay_factor = 0.0, epsilon = 1e-6, norm_coefficient = 0.0",
                        "one step of Adagrad: gradient g, sum of squares h"),
      Describe<Adam>(
          "r, t, x, g, v, h -> out_x over x|g|v|h, out_v over x|g|v|h, out_h over x|g|v|h", kTrainTypes,
          "alpha = 0.9, beta = 0.999, epsilon = 1e-6, norm_coefficient = 0.0, norm_coefficient_post = 0.0",
          "one step of Adam: gradient g, means v and h"),
      Describe<Momentum>("r, t, x, g, v -> out_x over x|g|v, out_v over x|g|v", kTrainTypes,
                         "alpha, beta, mode, standard or nesterov, norm_coefficient",
                         "one step of gradient descent with momentum v"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
