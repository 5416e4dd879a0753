// SPDX-License-Identifier: Apache-2.0
// Operators on images, boxes and regions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/float_constant.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/image.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/vision.h"

namespace rewire::compiler {
namespace {

// The dimensions of x times constant whole numbers; nothing when the scales are others.
std::optional<Shape> TimesWholeScales(const Shape& dims, const Value* scales) {
  const HostTensor* elements = ElementsOf(scales);
  if (elements == nullptr || !(elements->dtype == kFloat32)) return std::nullopt;
  const SharedBytes& bytes = elements->bytes;
  if (bytes.view.size() != dims.size() * sizeof(float)) return std::nullopt;
  Shape resized;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    float scale = 0;
    std::memcpy(&scale, bytes.view.data() + i * sizeof(float), sizeof(float));
    constexpr float kMost = 1024;
    if (!(scale >= 1 && scale <= kMost) || scale != std::floor(scale)) return std::nullopt;
    resized.push_back(dims[i] * DimExpr(static_cast<std::int64_t>(scale)));
  }
  return resized;
}

// The one scale that all axes named get under a policy that keeps the aspect ratio, f64[axes]: the least or
// the greatest of those that the sizes ask for.
Result<Value*> CommonScale(Op& op, Value* sizes, const std::string& policy) {
  if (policy != "not_larger" && policy != "not_smaller") {
    return op.Invalid("keep_aspect_ratio_policy is '{}', expected stretch, not_larger or not_smaller",
                      policy);
  }
  const Shape& dims = op.in(0)->type.dims;
  Shape from;
  for (const std::int64_t axis : op.IntList("axes")) {
    const Result<int> at = op.Axis(axis, op.in(0)->type.rank());
    if (!at) return Forward(at);
    from.push_back(dims[static_cast<std::size_t>(*at)]);
  }
  if (!op.HasAttribute("axes")) from = dims;
  const auto count = static_cast<std::int64_t>(from.size());
  Value* wanted = op.Cast(sizes, kFloat64);
  Value* scales = op.Apply(names::kDiv, wanted, op.Cast(op.DimsValue(from), kFloat64));
  const char* kernel = policy == "not_larger" ? names::kReduceMin : names::kReduceMax;
  return op.Call(names::kExpand, {op.Reduce(kernel, scales, {0}, true)}, {}, TensorOf(kFloat64, {count}));
}

// The sizes that x is resized to, where they are known: of all axes, or of those that are named.
std::optional<Shape> KnownSizes(const Op& op, const Value* sizes) {
  const std::optional<Shape> given = KnownElements(sizes);
  const Ints axes = op.IntList("axes");
  const Shape& x = op.in(0)->type.dims;
  if (!given || given->size() != (axes.empty() ? x.size() : axes.size()) ||
      !std::all_of(given->begin(), given->end(), [](const DimExpr& size) { return IsSize(size); }))
    return std::nullopt;
  Shape dims;
  const auto size = [&](std::size_t i, std::size_t) { return (*given)[i]; };
  return contract::ResizedSizes(x, axes, size, &dims, op.ShapeError()) ? std::optional(dims) : std::nullopt;
}

// Only the axes that are named, or all, have other sizes than those of x.
Op::OpenShape ResizedDims(const Op& op) {
  const Shape& dims = op.in(0)->type.dims;
  return op.HasAttribute("axes") ? Op::Open(dims, op.IntList("axes")) : Op::AllOpen(op.in(0)->type.rank());
}

// The dtype in which elements are mixed. What lies between integers may be beyond their range, to whose ends
// casts of floats hold it.
DLDataType MixedAs(DLDataType dtype, const std::string& mode) {
  const bool is_integer = dtype.code == kInt || dtype.code == kUInt;
  const bool mixes = mode != "nearest" && is_integer && dtype.bits > 8 && dtype != kInt32;
  return mixes ? kFloat64 : dtype;
}

// x resized by scales or to sizes. With sizes the kernel takes scales from the shapes, but where a policy
// gives all axes one.
Status ResizeBy(Op& op, Value* roi, Value* scales, Value* sizes, Attributes attributes) {
  const DLDataType given = op.in(0)->type.dtype;
  Value* x = op.Cast(op.in(0), MixedAs(given, op.String("mode", "nearest")));
  const auto set = [&](Value* resized) {
    // The kernel rounds integers to the nearest, and a cast of floats cuts them.
    if (x->type.dtype != given) resized = op.Unary(names::kRound, resized);
    op.Set(0, op.Cast(resized, given));
  };
  Attributes of_shape;
  if (op.HasAttribute("axes")) of_shape.push_back({"axes", op.IntList("axes")});
  attributes.insert(attributes.end(), of_shape.begin(), of_shape.end());
  // It says what sizes mean, and nothing of scales.
  const std::string policy = op.String("keep_aspect_ratio_policy", "stretch");
  std::vector<Value*> inputs = {x};
  if (scales != nullptr || roi != nullptr) inputs.push_back(roi != nullptr ? roi : op.Missing(kFloat32));
  if (scales != nullptr) {
    inputs.push_back(scales);
    if (std::optional<Shape> dims = TimesWholeScales(x->type.dims, scales); dims && of_shape.empty()) {
      set(op.Call(names::kResize, inputs, std::move(attributes), TensorOf(x->type.dtype, *std::move(dims))));
      return {};
    }
    set(op.CallShaped(names::kResize, inputs, std::move(attributes), x->type.dtype, ResizedDims(op),
                      {names::kShapeResize, {op.ShapeOf(x), scales}, of_shape}));
    return {};
  }
  if (sizes == nullptr) return op.Invalid("it has neither scales nor sizes");
  if (policy != "stretch") {
    of_shape.push_back({"keep_aspect_ratio_policy", policy});
    attributes.push_back({"keep_aspect_ratio_policy", policy});
    if (inputs.size() < 2) inputs.push_back(op.Missing(kFloat32));
    const Result<Value*> common = CommonScale(op, sizes, policy);
    if (!common) return Forward(common);
    inputs.push_back(*common);
  } else if (std::optional<Shape> dims = KnownSizes(op, sizes)) {
    set(op.Call(names::kResize, inputs, std::move(attributes), TensorOf(x->type.dtype, *std::move(dims))));
    return {};
  }
  set(op.CallShaped(names::kResize, inputs, std::move(attributes), x->type.dtype, ResizedDims(op),
                    {names::kShapeResizeSizes, {op.ShapeOf(x), sizes}, of_shape}));
  return {};
}

// Null for what is left out: a missing input, or one without elements.
Value* Given(Value* value) {
  if (value == nullptr) return nullptr;
  return value->type.rank() == 1 && value->type.dims[0].Is(0) ? nullptr : value;
}

Status LowerResize(Op& op, const Operator& /*row*/) {
  Attributes attributes = {{"mode", op.String("mode", "nearest")}};
  if (op.opset() < 11) {
    // Version 10 has scales alone, and one way of placing pixels.
    attributes.push_back({"coordinate_transformation_mode", std::string("asymmetric")});
    attributes.push_back({"nearest_mode", std::string("floor")});
    return ResizeBy(op, nullptr, op.in(1), nullptr, std::move(attributes));
  }
  for (const char* name : {"coordinate_transformation_mode", "nearest_mode"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.String(name, "")});
  }
  for (const char* name : {"cubic_coeff_a", "extrapolation_value"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.Float(name, 0)});
  }
  for (const char* name : {"exclude_outside", "antialias"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.Int(name, 0)});
  }
  return ResizeBy(op, Given(op.in(1)), Given(op.in(2)), Given(op.in(3)), std::move(attributes));
}

Status LowerUpsample(Op& op, const Operator& /*row*/) {
  Value* scales = op.in(1);
  if (scales == nullptr) scales = FloatsValue(op, op.FloatList("scales"));
  const std::string mode = op.String("mode", "nearest");
  return ResizeBy(op, nullptr, scales, nullptr,
                  {{"mode", mode == "bilinear" ? "linear" : mode},
                   {"coordinate_transformation_mode", std::string("asymmetric")},
                   {"nearest_mode", std::string("floor")}});
}

Status LowerGridSample(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Value* grid = op.in(1);
  Shape dims;
  Status fits = contract::SampledSizes(x->type.dims, grid->type.dims, &dims, op.ShapeError());
  if (!fits) return fits;
  op.Set(0, op.Call(row.kernel, {x, grid},
                    {{"mode", op.String("mode", "bilinear")},
                     {"padding_mode", op.String("padding_mode", "zeros")},
                     {"align_corners", op.Int("align_corners", 0)}},
                    TensorOf(x->type.dtype, std::move(dims))));
  return {};
}

Status LowerRoiAlign(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const std::int64_t height = op.Int("output_height", 1), width = op.Int("output_width", 1);
  Shape dims;
  Status fits =
      contract::RegionSizes(x->type.dims, op.in(1)->type.dims, height, width, &dims, op.ShapeError());
  if (!fits) return fits;
  // Version 16 made half a pixel the default.
  const std::string placing =
      op.opset() < 16 ? "output_half_pixel" : op.String("coordinate_transformation_mode", "half_pixel");
  op.Set(0, op.Call(row.kernel, {x, op.in(1), op.in(2)},
                    {{"output_height", height},
                     {"output_width", width},
                     {"sampling_ratio", op.Int("sampling_ratio", 0)},
                     {"spatial_scale", op.Float("spatial_scale", 1)},
                     {"mode", op.String("mode", "avg")},
                     {"coordinate_transformation_mode", placing}},
                    TensorOf(x->type.dtype, std::move(dims))));
  return {};
}

Status LowerMaxRoiPool(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const Ints pooled = op.IntList("pooled_shape");
  if (pooled.size() != 2) return op.Invalid("pooled_shape has {} sizes, expected 2", pooled.size());
  Shape dims;
  Status fits =
      contract::RegionSizes(x->type.dims, op.in(1)->type.dims, pooled[0], pooled[1], &dims, op.ShapeError());
  if (!fits) return fits;
  op.Set(0, op.Call(row.kernel, {x, op.in(1)}, {{"spatial_scale", op.Float("spatial_scale", 1)}},
                    TensorOf(x->type.dtype, std::move(dims))));
  return {};
}

Status LowerNonMaxSuppression(Op& op, const Operator& row) {
  const Attributes attributes = {{"center_point_box", op.Int("center_point_box", 0)}};
  const std::vector<Value*> inputs = op.Arguments(0, 4);
  op.Set(0, op.CallShaped(row.kernel, inputs, attributes, kInt64, {std::nullopt, DimExpr(3)},
                          {names::kShapeNms, inputs, attributes}));
  return {};
}

// `size` is the shape of the image [N, C, ...] that a grid [N, ..., axes] samples.
Status LowerAffineGrid(Op& op, const Operator& row) {
  Value *theta = op.in(0), *size = op.in(1);
  const Result<std::int64_t> rank = op.Length(size, "the image's shape");
  if (!rank) return Forward(rank);
  if (theta->type.rank() != 3 || *rank < 3)
    return op.Invalid("theta has shape {} for an image of rank {}", ShapeText(theta->type.dims), *rank);
  const Attributes attributes = {{"align_corners", op.Int("align_corners", 0)}};
  if (const std::optional<Shape> known = KnownElements(size)) {
    Shape dims = *known;
    dims.erase(dims.begin() + 1);
    dims.emplace_back(*rank - 2);
    op.Set(0, op.Call(row.kernel, {theta}, attributes, TensorOf(theta->type.dtype, std::move(dims))));
    return {};
  }
  Op::OpenShape known(static_cast<std::size_t>(*rank));
  known.front() = theta->type.dims[0];
  known.back() = *rank - 2;
  Ints picks = {0};
  for (std::int64_t i = 2; i < *rank; ++i) picks.push_back(i);
  Value* picked = op.Call(names::kGather, {op.Cast(size, kInt64), op.IntsValue(picks)},
                          {{"axis", std::int64_t{0}}}, TensorOf(kInt64, {*rank - 1}));
  Value* shape = op.Concat({picked, op.IntsValue({*rank - 2})}, 0);
  op.Set(0, op.CallSized(row.kernel, {theta}, attributes, theta->type.dtype, shape, known));
  return {};
}

Status LowerDet(Op& op, const Operator& row) {
  Value* x = op.in(0);
  if (x->type.rank() < 2) return op.Invalid("input {} is no matrix", ShapeText(x->type.dims));
  op.Set(0, op.Call(row.kernel, {x}, {},
                    TensorOf(x->type.dtype, Shape(x->type.dims.begin(), x->type.dims.end() - 2))));
  return {};
}

// The size of the picture in a file is known when the file is.
Status LowerImageDecoder(Op& op, const Operator& row) {
  const auto& has_kernel = op.lowering().options().has_kernel;
  if (has_kernel && !has_kernel(row.kernel))
    return op.Unsupported("the kernel library of encoded pictures is missing");
  const std::string format = op.String("pixel_format", "RGB");
  Value* file = op.in(0);
  if (file->type.rank() != 1)
    return op.Invalid("the file has shape {}, expected one dimension", ShapeText(file->type.dims));
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = {file};
  call.attributes = {{"pixel_format", format}};
  const DimExpr any = DimExpr::Symbol(kAnyDim);
  call.outputs.push_back(op.lowering().graph().WithFreshDims(
      TensorOf(kUInt8, {any, any, DimExpr(format == "Grayscale" ? 1 : 3)})));
  call.returns = true;
  op.Set(0, op.Call(std::move(call))[0]);
  return {};
}

}  // namespace

std::span<const Operator> VisionOperators() {
  static constexpr Operator kOperators[] = {
      {"AffineGrid", 20, 0, 2, 2, "align_corners", LowerAffineGrid, names::kAffineGrid},
      {"Det", 11, 0, 1, 1, "", LowerDet, names::kDet},
      {"GridSample", 16, 0, 2, 2, "align_corners mode padding_mode", LowerGridSample, names::kGridSample},
      {"ImageDecoder", 20, 0, 1, 1, "pixel_format", LowerImageDecoder, names::kImageDecode},
      {"MaxRoiPool", 1, 0, 2, 2, "pooled_shape spatial_scale", LowerMaxRoiPool, names::kMaxRoiPool},
      {"NonMaxSuppression", 10, 0, 2, 5, "center_point_box", LowerNonMaxSuppression, names::kNms},
      {"Resize", 10, 0, 1, 4,
       "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
       "keep_aspect_ratio_policy mode nearest_mode",
       LowerResize},
      {"RoiAlign", 10, 0, 3, 3,
       "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale",
       LowerRoiAlign, names::kRoiAlign},
      {"Upsample", 7, 9, 1, 2, "mode scales<9", LowerUpsample},
  };
  return kOperators;
}

}  // namespace rewire::compiler
