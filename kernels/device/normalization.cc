// SPDX-License-Identifier: Apache-2.0
// Elements scaled by statistics of their row.
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/with_attributes.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

Status CheckSame(TensorView x, TensorView out) {
  DeviceChecks checks;
  checks.On("out", out).Beside("x", x, out).Real("x", x).SameDType("out", out, "x", x);
  return checks.Shape("out", out, x.dims()).Take();
}

// A tensor of x's dtype with this shape.
Status CheckFactor(const char* what, TensorView factor, TensorView x, ShapeView expected) {
  DeviceChecks checks;
  return checks.Beside(what, factor, x).SameDType(what, factor, "x", x).Shape(what, factor, expected).Take();
}

template <bool kLog>
struct Softmax : WithAttributes<contract::SoftmaxAttributes> {
  static constexpr const char* kName =
      kLog ? names::kOnDevice<names::kLogSoftmax> : names::kOnDevice<names::kSoftmax>;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckSame(x, out); !s.ok()) return s;
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    if (x.size() == 0) return Status();
    const std::int64_t inner = cpu::Product(x.dims(), along + 1, x.ndim());
    const std::int64_t lines = x.size() / x.dim(along);
    if (inner == 1) {
      Call call(out, Program::kReduction, RealForm(x), "softmax_rows");
      call.Tensor(x).Tensor(out).Int(x.dim(along)).Int(kLog ? 1 : 0);
      return call.Rows(lines);
    }
    Call call(out, Program::kReduction, RealForm(x), "softmax");
    call.Tensor(x).Tensor(out).Int(x.dim(along)).Int(inner).Int(kLog ? 1 : 0).Int(lines);
    return call.Each(lines);
  }
};

// RowNorm holds the arguments of normalize_rows besides its tensors.
struct RowNorm {
  std::int64_t length;
  std::int64_t groups;
  std::int64_t per_group;
  std::int64_t run;
  bool centered;
  double epsilon;

  Status Run(TensorView x, TensorView scale, const std::optional<TensorView>& bias, TensorView out) const {
    if (x.size() == 0) return Status();
    Call call(out, Program::kReduction, RealForm(x), "normalize_rows");
    call.Tensor(x)
        .Tensor(scale)
        .Optional(bias, scale)
        .Tensor(out)
        .Int(length)
        .Int(groups)
        .Int(per_group)
        .Int(run);
    call.Int(centered ? 1 : 0).Int(bias ? 1 : 0).Value(static_cast<float>(epsilon));
    return call.Rows(x.size() / length);
  }
};

// Normalization of the dimensions from an axis on.
struct TailNorm : contract::RowNormAttributes {
  Status Run(bool centered, TensorView x, TensorView scale, const std::optional<TensorView>& bias,
             TensorView out) const {
    if (Status s = CheckSame(x, out); !s.ok()) return s;
    int first = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &first); !s.ok()) return s;
    const ShapeView tail(x.dims().data() + first, x.dims().size() - static_cast<std::size_t>(first));
    if (Status s = CheckFactor("scale", scale, x, tail); !s.ok()) return s;
    if (bias) {
      if (Status s = CheckFactor("bias", *bias, x, tail); !s.ok()) return s;
    }
    const std::int64_t length = cpu::Product(x.dims(), first, x.ndim());
    return RowNorm{length, 1, 0, 1, centered, epsilon}.Run(x, scale, bias, out);
  }
};

struct LayerNorm {
  static constexpr const char* kName = names::kOnDevice<names::kLayerNorm>;
  TailNorm norm;
  static Status Make(Attributes& attributes, LayerNorm* layer) {
    layer->norm.Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, std::optional<TensorView> bias, TensorView out) const {
    return norm.Run(true, x, scale, Given(bias), out);
  }
};

struct RmsNorm {
  static constexpr const char* kName = names::kOnDevice<names::kRmsNorm>;
  TailNorm norm;
  static Status Make(Attributes& attributes, RmsNorm* rms) {
    rms->norm.Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, TensorView out) const {
    return norm.Run(false, x, scale, std::nullopt, out);
  }
};

struct GroupNorm : WithAttributes<contract::GroupNormAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kGroupNorm>;
  Status operator()(TensorView x, TensorView scale, TensorView bias, TensorView out) const {
    if (Status s = CheckSame(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected [N, C, ...]");
    const std::int64_t channels = x.dim(1);
    const std::int64_t parts = GroupsOf(channels);
    if (parts > 0 && channels % parts != 0) {
      return ValueError("x has ", channels, " channels, no multiple of ", parts, " groups");
    }
    const std::int64_t factors = scale.ndim() == 1 && scale.dim(0) == parts ? parts : channels;
    if (Status s = CheckFactor("scale", scale, x, ShapeView(&factors, 1)); !s.ok()) return s;
    if (Status s = CheckFactor("bias", bias, x, ShapeView(&factors, 1)); !s.ok()) return s;
    if (x.size() == 0) return Status();
    const std::int64_t inner = cpu::Product(x.dims(), 2, x.ndim());
    const std::int64_t length = channels / parts * inner;
    const std::int64_t per_group = factors / parts;
    return RowNorm{length, parts, per_group, length / per_group, true, epsilon}.Run(x, scale, bias, out);
  }
};

struct BatchNorm : WithAttributes<contract::BatchNormAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kBatchNorm>;
  Status operator()(TensorView x, TensorView scale, TensorView bias, TensorView mean, TensorView variance,
                    TensorView out) const {
    if (Status s = CheckSame(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected [N, C, ...]");
    const std::int64_t channels = x.dim(1);
    const std::pair<const char*, TensorView> factors[] = {
        {"scale", scale}, {"bias", bias}, {"mean", mean}, {"variance", variance}};
    for (const auto& [name, factor] : factors) {
      if (Status s = CheckFactor(name, factor, x, ShapeView(&channels, 1)); !s.ok()) return s;
    }
    Call call(out, Program::kReduction, RealForm(x), "batch_norm");
    call.Tensor(x).Tensor(scale).Tensor(bias).Tensor(mean).Tensor(variance).Tensor(out).Int(channels);
    call.Int(cpu::Product(x.dims(), 2, x.ndim())).Value(static_cast<float>(epsilon)).Int(x.size());
    return call.Each(x.size());
  }
};

}  // namespace

std::span<const Kernel> NormalizationKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<LayerNorm>(
          "x, scale, bias? -> out over x", "f32 f16", "axis = -1, epsilon = 1e-5",
          "x less its mean, over its standard deviation, of the dimensions from the axis on; times "
          "scale, plus bias, both of these dimensions"),
      Describe<RmsNorm>(
          "x, scale -> out over x", "f32 f16", "axis = -1, epsilon = 1e-5",
          "x over the root of its mean square, of the dimensions from the axis on; times scale of these "
          "dimensions"),
      Describe<GroupNorm>(
          "x, scale, bias -> out over x", "f32 f16", "num_groups = 0 (as many as channels), epsilon = 1e-5",
          "x [N, C, ...] less its mean, over its standard deviation, of each group of channels; times "
          "scale, plus bias, both [C] or [num_groups]; instance normalization by default"),
      Describe<BatchNorm>(
          "x, scale, bias, mean, variance -> out over x", "f32 f16", "epsilon = 1e-5",
          "(x - mean) / sqrt(variance + epsilon) * scale + bias for x [N, C, ...], the others [C]"),
      Describe<Softmax<false>>("x -> out over x", "f32 f16", "axis = -1",
                               "exp(x) / sum of exp(x) along the axis"),
      Describe<Softmax<true>>("x -> out over x", "f32 f16", "axis = -1",
                              "the logarithm of the softmax along the axis"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
