// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/conv_transpose_attributes.h"

#include "rewire/kernels/cpu/shape/shapes.h"

namespace rewire::kernel::cpu {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

ShapeView View(const std::vector<std::int64_t>& values) { return {values.data(), values.size()}; }

Status CheckCount(const char* name, const std::vector<std::int64_t>& values, int spatial) {
  if (values.empty() || values.size() == static_cast<std::size_t>(spatial)) return Status();
  return ValueError("attribute '", name, "' is ", View(values), ", expected ", spatial, " ints");
}

}  // namespace

Status ConvTransposeAttributes::Read(Attributes& attributes) {
  window.Read(attributes, false, false);
  groups = attributes.Int("group", 1, 1);
  output_padding = attributes.Ints("output_padding", {});
  output_shape = attributes.Ints("output_shape", {});
  for (std::int64_t padding : output_padding) {
    if (padding < 0 || padding > kMostExtent)
      return ValueError("attribute 'output_padding' is ", View(output_padding),
                        ", expected ints of at least 0");
  }
  for (std::int64_t dim : output_shape) {
    if (dim < 0 || dim > kMostExtent)
      return ValueError("attribute 'output_shape' is ", View(output_shape), ", expected dimensions");
  }
  return window.Check();
}

Status ConvTransposeAttributes::Resolve(ShapeView x, ShapeView w, Window* resolved, Dims* result) const {
  const int spatial = static_cast<int>(x.size()) - 2;
  if (spatial < 1 || spatial > kMaxSpatial || w.size() != x.size()) {
    return ValueError("x has shape ", x, " and w ", w, ", expected one rank with 1 to ", kMaxSpatial,
                      " spatial axes");
  }
  if (w[0] != x[1] || x[1] % groups != 0) {
    return ValueError("w has shape ", w, ", expected ", x[1], " channels, a multiple of ", groups,
                      " groups, as x of shape ", x);
  }
  if (Status s = window.CheckCounts(spatial); !s.ok()) return s;
  if (Status s = CheckCount("output_padding", output_padding, spatial); !s.ok()) return s;
  if (Status s = CheckCount("output_shape", output_shape, spatial); !s.ok()) return s;
  *resolved = Window();
  resolved->rank = spatial;
  *result = Dims(ShapeView(x.data(), 1));
  result->push_back(Times(w[1], groups));
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<std::size_t>(i);
    WindowAxis axis = window.Axis(i, spatial);
    axis.kernel = w[at + 2];
    axis.output = x[at + 2];
    if (axis.kernel < 1) return ValueError("w has shape ", w, ": the kernel is empty");
    if (Status s = Extend(at, &axis); !s.ok()) return s;
    result->push_back(axis.input);
    resolved->axes[kMaxSpatial - spatial + i] = axis;
  }
  return Status();
}

Status ConvTransposeAttributes::Extend(std::size_t i, WindowAxis* axis) const {
  const std::int64_t extra = output_padding.empty() ? 0 : output_padding[i];
  const std::int64_t whole = axis->output == 0 ? 0 : Plus(axis->covered(), extra);
  const bool same = contract::IsSame(window.auto_pad);
  if (output_shape.empty() && !same) {
    axis->input = whole - axis->before - axis->after;
    if (axis->input >= 0 && axis->input <= kMostExtent) return Status();
    return ValueError("the pads ", axis->before, " and ", axis->after, " do not fit spatial axis ", i,
                      ", where windows cover ", whole);
  }
  axis->input = output_shape.empty() ? Times(axis->output, axis->stride) : output_shape[i];
  if (axis->input > kMostExtent || whole >= kMostSize)
    return ValueError("spatial axis ", i, " of out would have ", axis->input,
                      " elements, where windows cover ", whole);
  contract::SetSamePads(window.auto_pad, whole, axis->input, axis);
  return Status();
}

}  // namespace rewire::kernel::cpu
