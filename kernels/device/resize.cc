// SPDX-License-Identifier: Apache-2.0
// ONNX Resize, by elements: each one reads what lies around its position in x.
#include "rewire/kernels/contract/resize.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/vision.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/vision/resample.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

// The device code numbers them as kernels/contract does.
static_assert(int{kResizeCubic} == static_cast<int>(contract::Interpolation::kCubic));
static_assert(int{kResizeTfHalfPixel} == static_cast<int>(contract::Coordinates::kTfHalfPixel));
static_assert(int{kResizeCeil} == static_cast<int>(contract::Rounding::kCeil));

struct Resize {
  static constexpr const char* kName = names::kOnDevice<names::kResize>;
  contract::ResizeAttributes attributes;
  static Status Make(Attributes& given, Resize* resize) {
    resize->attributes.Read(given);
    const bool crops = resize->attributes.coordinates == contract::Coordinates::kTfCropAndResize;
    if (!crops && !resize->attributes.antialias) return Status();
    return ValueError(crops ? "tf_crop_and_resize" : "antialias", " is left to the CPU");
  }
  Status operator()(TensorView x, std::optional<TensorView> roi, std::optional<TensorView> scales,
                    TensorView out) const {
    (void)roi;  // of tf_crop_and_resize
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    IntegerType type{};
    if (Status s = ElementTypeOf("x", x, kReals | kBytes, &type); !s.ok()) return s;
    if (Status s = cpu::CheckRank("out", out, x.ndim()); !s.ok()) return s;
    bool marked[cpu::kMaxKernelRank];
    const ShapeView named(attributes.axes.data(), attributes.axes.size());
    if (Status s = cpu::MarkAxes(named, x.ndim(), marked); !s.ok()) return s;
    if (out.size() == 0) return Status();
    if (x.size() == 0) return ValueError("x has shape ", x.dims(), ": nothing to resize to ", out.dims());
    Resizing resizing{};
    resizing.rank = x.ndim();
    resizing.mode = static_cast<int>(attributes.mode);
    resizing.coordinates = static_cast<int>(attributes.coordinates);
    resizing.rounding = static_cast<int>(attributes.rounding);
    resizing.exclude_outside = attributes.exclude_outside ? 1 : 0;
    resizing.cubic = static_cast<float>(attributes.cubic_a);
    for (int i = 0; i < x.ndim(); ++i) {
      resizing.input[i] = static_cast<int>(x.dim(i));
      resizing.output[i] = static_cast<int>(out.dim(i));
      resizing.scale[i] = -1;
    }
    if (cpu::IsGiven(scales)) {
      if (Status s = ReadScales(*scales, x, &resizing); !s.ok()) return s;
    }
    Call call(out, Program::kWindow, RealForm(x), "resize");
    call.Tensor(x).Optional(scales, x).Tensor(out).Value(resizing).Int(type).Int(out.size());
    return call.Each(out.size());
  }

 private:
  // The scales' values are read by the device; out's shape says what they have made of the sizes.
  Status ReadScales(TensorView scales, TensorView x, Resizing* resizing) const {
    const std::int64_t count =
        attributes.axes.empty() ? x.ndim() : static_cast<std::int64_t>(attributes.axes.size());
    DeviceChecks checks;
    checks.Beside("scales", scales, x).Shape("scales", scales, ShapeView(&count, 1));
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!scales.Is<float>()) return TypeError("scales is ", DTypeName(scales.dtype()), ", expected f32");
    for (int i = 0; i < count; ++i) {
      const std::int64_t axis = attributes.axes.empty() ? i : attributes.axes[static_cast<std::size_t>(i)];
      resizing->scale[axis < 0 ? axis + x.ndim() : axis] = i;
    }
    return Status();
  }
};

}  // namespace

std::span<const Kernel> ResizeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Resize>(
          "x, roi?, scales? -> out", "x, out f32 f16 i8 u8; roi f32; scales f32",
          "as rewire.resize, but for coordinate_transformation_mode = tf_crop_and_resize and antialias = 1",
          "ONNX Resize to out's shape; without scales an axis' scale is out's size over x's"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
