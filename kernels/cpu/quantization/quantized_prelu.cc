// SPDX-License-Identifier: Apache-2.0
//
// PRelu between integers that represent floats.
#include <algorithm>
#include <limits>

#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {
namespace {

struct QuantizedPRelu {
  static constexpr const char* kName = names::kPReluQuantized;
  Quantization x, out;

  static Status Make(Attributes& attributes, QuantizedPRelu* prelu) {
    const auto byte = [&](const char* name) {
      return static_cast<std::int32_t>(attributes.Int(name, 0, -128, 255));
    };
    for (const char* name : {"x_scale", "scale"}) attributes.Require(name);
    prelu->x = {static_cast<float>(attributes.Float("x_scale", 1)), byte("x_zero"), 0, 0};
    prelu->out = {static_cast<float>(attributes.Float("scale", 1)), byte("zero"), 0, 0};
    return Status();
  }

  Status operator()(TensorView from, TensorView slope, TensorView to) const {
    Checks checks;
    checks.Operands("x", from, "slope", slope, to).SameDType("out", to, "x", from);
    checks.Shape("out", to, from.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!slope.Is<float>()) return WrongDType(Types<float>(), "slope", slope);
    if (from.ndim() < 1) return ValueError("x has shape ", from.dims(), ", expected at least one axis");
    const std::int64_t period = from.dim(from.ndim() - 1);
    if (Status s = CheckShape("slope", slope, ShapeView(&period, 1)); !s.ok()) return s;
    float* slopes = nullptr;
    if (Status s = Workspace(Plus(period, kMoreSlopes), &slopes); !s.ok()) return s;
    if (from.size() == 0) return Status();
    const float* given = slope.data<float>();
    Pace pace;
    if (!pace.Copy(slopes, given, period * static_cast<std::int64_t>(sizeof(float)))) return Stopped();
    for (std::int64_t i = 0; i < kMoreSlopes; ++i) slopes[period + i] = given[i % period];
    return ForType(Types<std::uint8_t, std::int8_t>(), "x", from, [&](auto tag) {
      using Q = typename decltype(tag)::type;
      Quantization by = out;
      by.least = std::numeric_limits<Q>::min();
      by.most = std::numeric_limits<Q>::max();
      // Runs begin with the first slope.
      return ParallelFor(
          from.size() / period, GrainOf(kGrain, period), [&](std::int64_t begin, std::int64_t end) {
            BestQuantizedMath<Q>().prelu(from.data<Q>() + begin * period, x, slopes, period,
                                         (end - begin) * period, by, to.data<Q>() + begin * period);
          });
    });
  }

  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* from = sizes.Tensor(0, 1);
    if (from == nullptr) return false;
    sizes.Take(Plus(LastDim(from), kMoreSlopes), sizeof(float));
    return true;
  }
};

}  // namespace

std::span<const Kernel> QuantizedPReluKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<QuantizedPRelu>("x, slope -> out", "x, out u8 i8; slope f32",
                               "x_scale, scale; x_zero, zero = 0",
                               "x dequantized by x_scale and x_zero, negative numbers multiplied by the "
                               "slope of their position along "
                               "the last axis, and quantized by scale and zero"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
