// SPDX-License-Identifier: Apache-2.0
// Borders around a tensor.
#include <algorithm>

#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/movement/pad_attributes.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

// The device code numbers them as kernels/cpu does.
static_assert(int{kBorderReflect} == static_cast<int>(cpu::PadMode::kReflect));
static_assert(int{kBorderWrap} == static_cast<int>(cpu::PadMode::kWrap));

Status RunPad(cpu::PadMode mode, ShapeView pads, TensorView x, const std::optional<TensorView>& value,
              TensorView out) {
  DeviceChecks checks;
  checks.On("out", out).Beside("x", x, out).SameDType("out", out, "x", x);
  const bool has_value = cpu::IsGiven(value);
  if (has_value) checks.Beside("value", *value, out).SameDType("value", *value, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (has_value && value->size() != 1)
    return ValueError("value has shape ", value->dims(), ", expected one element");
  Dims expected;
  if (Status s = cpu::PaddedDims(x.dims(), pads, &expected); !s.ok()) return s;
  if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
  if (out.size() == 0) return Status();
  if (mode != cpu::PadMode::kConstant) {
    if (Status s = cpu::CheckPads(mode, pads, x.dims()); !s.ok()) return s;
  }
  Form form{};
  if (Status s = MoveForm("x", x, &form); !s.ok()) return s;
  Border border{};
  border.rank = x.ndim();
  border.mode = static_cast<int>(mode);
  for (int i = 0; i < x.ndim(); ++i) {
    border.dims[i] = static_cast<int>(out.dim(i));
    border.inner[i] = static_cast<int>(x.dim(i));
    // More than this is the same: all of the axis is cut off, or nothing of x is in reach.
    const std::int64_t before = pads[static_cast<std::size_t>(i)];
    border.before[i] = static_cast<int>(std::clamp(before, -x.dim(i), kMostElements));
  }
  Call call(out, Program::kMovement, form, "pad");
  call.Tensor(x).Optional(value, x).Tensor(out).Value(border).Int(has_value ? 1 : 0).Int(out.size());
  return call.Each(out.size());
}

struct Pad : contract::PadAttributes {
  static constexpr const char* kName = names::kOnDevice<names::kPad>;
  cpu::PadMode mode = cpu::PadMode::kConstant;
  static Status Make(Attributes& attributes, Pad* pad) {
    pad->Read(attributes);
    pad->mode = cpu::ReadPadMode(attributes);
    return Status();
  }
  Status operator()(TensorView x, std::optional<TensorView> value, TensorView out) const {
    return RunPad(mode, ShapeView(pads.data(), pads.size()), x, value, out);
  }
};

struct DynamicPad {
  static constexpr const char* kName = names::kOnDevice<names::kDynamicPad>;
  cpu::PadMode mode = cpu::PadMode::kConstant;
  static Status Make(Attributes& attributes, DynamicPad* pad) {
    pad->mode = cpu::ReadPadMode(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView pads, std::optional<TensorView> value,
                    std::optional<TensorView> axes, TensorView out) const {
    cpu::AllPads all;
    if (Status s = CheckOnDevice("x", x); !s.ok()) return s;
    if (Status s = all.Read(x.ndim(), pads, axes); !s.ok()) return s;
    return RunPad(mode, all.view(), x, value, out);
  }
};

}  // namespace

std::span<const Kernel> PadKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Pad>(
          "x, value? -> out", "any",
          "pads (before each axis, then after each), mode = constant, reflect, edge or wrap",
          "x with a border of the value (0 if none), of its mirror image, its edge or its other side; "
          "negative pads remove"),
      OnHost(Describe<DynamicPad>("x, pads, value?, axes? -> out", "x, value, out any; pads, axes i64 i32",
                                  "mode = constant, reflect, edge or wrap",
                                  "rewire.device.pad with its pads as a tensor, of all axes or of these"),
             {"pads", "axes"}),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
