// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools: operators that slide a window over spatial axes.
#include "rewire/kernels/contract/convolution.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/building_blocks.h"
#include "rewire/compiler/operators/given_attributes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/shape.h"
#include "rewire/kernels/contract/window.h"

namespace rewire::compiler {
namespace {

// The window of an operator. Weights that are an input may have open sizes.
struct Window {
  Shape kernel;
  contract::WindowAttributes given;

  // As kernels take them, with every list.
  Attributes attributes() const {
    Ints strides, dilations, before, after;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const contract::WindowStep step = given.Step(i, kernel.size());
      strides.push_back(step.stride);
      dilations.push_back(step.dilation);
      before.push_back(step.before);
      after.push_back(step.after);
    }
    Attributes list = {{"strides", strides}, {"dilations", dilations}};
    if (given.auto_pad == contract::AutoPad::kNotSet) {
      before.insert(before.end(), after.begin(), after.end());
      list.push_back({"pads", before});
    } else {
      list.push_back(
          {"auto_pad", std::string(contract::kAutoPads[static_cast<std::size_t>(given.auto_pad)])});
    }
    return list;
  }

  DimExpr Out(const DimExpr& in, std::size_t i) const {
    const contract::WindowStep step = given.Step(i, kernel.size());
    if (contract::IsSame(given.auto_pad)) return contract::WindowsOfSame(in, step);
    return contract::WindowsWithin(contract::WindowRoom(in, kernel[i], step), step);
  }
};

Status CheckList(const Op& op, const contract::WindowAttributes::List& list, std::size_t spatial) {
  if (list.values.size() != list.count)
    return op.Invalid("{} has {} numbers, expected {} for {} spatial axes", list.name, list.values.size(),
                      list.count, spatial);
  for (std::size_t i = 0; i < list.count; ++i) {
    constexpr std::int64_t kMost = contract::WindowAttributes::kMost;
    if (list.values[i] < list.least || list.values[i] > kMost)
      return op.Invalid("{}[{}] is {}, expected {} to {}", list.name, i, list.values[i], list.least, kMost);
  }
  return {};
}

// `kernel` is the window's size: an attribute of pools, the weights' of convolutions.
Result<Window> ReadWindow(const Op& op, Shape kernel, std::size_t spatial) {
  Window window{std::move(kernel), {}};
  GivenAttributes attributes(op);
  window.given.Read(attributes, false, false);
  if (Status known = attributes.Finish(); !known) return Forward(known);
  Ints sizes;
  for (const DimExpr& size : window.kernel) sizes.push_back(size.constant().value_or(1));
  Status fits = CheckList(op, {"kernel_shape", sizes, spatial, 1}, spatial);
  window.given.ForEachList(spatial, [&](const contract::WindowAttributes::List& list) {
    if (fits && !list.values.empty()) fits = CheckList(op, list, spatial);
  });
  if (!fits) return Forward(fits);
  return window;
}

// The window of weights: kernel_shape says an open size, too.
Shape WeightsWindow(const Op& op, const Shape& weights) {
  if (op.HasAttribute("kernel_shape")) return ShapeOfInts(op.IntList("kernel_shape"));
  return {weights.begin() + 2, weights.end()};
}

// kernel_shape says again what the weights' shape says.
Status CheckKernelShape(const Op& op, const Shape& weights) {
  if (!op.HasAttribute("kernel_shape")) return {};
  const Ints given = op.IntList("kernel_shape");
  bool fits = given.size() + 2 == weights.size();
  for (std::size_t i = 0; fits && i < given.size(); ++i) {
    fits = !weights[i + 2].IsConstant() || weights[i + 2].Is(given[i]);
  }
  if (fits) return {};
  return op.Invalid("kernel_shape is {}, the weights are {}", ShapeText(ShapeOfInts(given)),
                    ShapeText(weights));
}

struct Convolution {
  Attributes attributes;
  Shape dims;
};

Result<Convolution> ReadConvolution(const Op& op, const Value* x, const Value* w) {
  const std::int64_t groups = op.Int("group", 1);
  if (Status fits = contract::CheckChannels(x->type.dims, w->type.dims, groups, op.ShapeError()); !fits)
    return Forward(fits);
  if (Status fits = CheckKernelShape(op, w->type.dims); !fits) return Forward(fits);
  const auto spatial = static_cast<std::size_t>(x->type.rank() - 2);
  const Result<Window> window = ReadWindow(op, WeightsWindow(op, w->type.dims), spatial);
  if (!window) return Forward(window);
  Convolution convolution{window->attributes(), {x->type.dims[0], w->type.dims[0]}};
  convolution.attributes.push_back({"group", groups});
  for (std::size_t i = 0; i < spatial; ++i) convolution.dims.push_back(window->Out(x->type.dims[i + 2], i));
  return convolution;
}

Status LowerConv(Op& op, const Operator& /*row*/) {
  const Result<Value*> sums = ConvOf(op);
  if (!sums) return Forward(sums);
  op.Set(0, *sums);
  return {};
}

Status LowerConvInteger(Op& op, const Operator& row) {
  Result<Convolution> convolution = ReadConvolution(op, op.in(0), op.in(1));
  if (!convolution) return Forward(convolution);
  op.Set(0, op.Call(row.kernel, op.Arguments(0, 3), convolution->attributes,
                    TensorOf(kInt32, convolution->dims)));
  return {};
}

// x, its scale and zero, w, its scale and zero, the result's scale and zero, a bias.
Status LowerQLinearConv(Op& op, const Operator& row) {
  Result<Convolution> convolution = ReadConvolution(op, op.in(0), op.in(3));
  if (!convolution) return Forward(convolution);
  Value* sums = op.Call(row.kernel, {op.in(0), op.in(3), op.in(2), op.in(5)}, convolution->attributes,
                        TensorOf(kInt32, convolution->dims));
  if (Value* bias = op.in(8)) {
    Shape dims(static_cast<std::size_t>(op.in(0)->type.rank() - 1), DimExpr(1));
    dims[0] = bias->type.dims[0];
    sums = op.Apply(names::kAdd, sums, op.Reshape(bias, std::move(dims)));
  }
  op.Set(0, op.Call(names::kRequantize, {sums, op.in(1), op.in(4), op.in(6), op.in(7)},
                    {{"axis", std::int64_t{1}}}, TensorOf(op.in(7)->type.dtype, convolution->dims)));
  return {};
}

// The output's dimensions where pads, and not the output's shape, are given; nothing otherwise.
std::optional<Shape> TransposedDims(const Op& op) {
  const Shape &x = op.in(0)->type.dims, &w = op.in(1)->type.dims;
  if (op.HasAttribute("output_shape") || op.String("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  if (x.size() < 3 || w.size() != x.size()) return std::nullopt;
  const std::size_t spatial = x.size() - 2;
  contract::WindowAttributes window;
  GivenAttributes attributes(op);
  window.Read(attributes, false, false);
  const Ints added = op.IntList("output_padding");
  if (!window.FitsAxes(spatial) || (!added.empty() && added.size() != spatial)) return std::nullopt;
  Shape dims = {x[0], w[1] * DimExpr(op.Int("group", 1))};
  for (std::size_t i = 0; i < spatial; ++i) {
    const contract::WindowStep step = window.Step(i, spatial);
    dims.push_back(contract::CoveredBy(x[i + 2], w[i + 2], step) + DimExpr(added.empty() ? 0 : added[i]) -
                   DimExpr(step.before) - DimExpr(step.after));
  }
  return dims;
}

Status LowerConvTranspose(Op& op, const Operator& row) {
  if (Status fits = CheckKernelShape(op, op.in(1)->type.dims); !fits) return fits;
  Attributes attributes = {{"group", op.Int("group", 1)}};
  for (const char* name : {"strides", "dilations", "pads", "output_padding", "output_shape"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.IntList(name)});
  }
  if (op.HasAttribute("auto_pad")) attributes.push_back({"auto_pad", op.String("auto_pad", "NOTSET")});
  Value* x = op.in(0);
  if (const std::optional<Shape> dims = TransposedDims(op)) {
    op.Set(0, op.Call(row.kernel, op.Arguments(0, 2), std::move(attributes), TensorOf(x->type.dtype, *dims)));
    return {};
  }
  Op::OpenShape known = Op::AllOpen(x->type.rank());
  if (x->type.rank() >= 3 && op.in(1)->type.rank() >= 2) {
    known[0] = x->type.dims[0];
    known[1] = op.in(1)->type.dims[1] * DimExpr(op.Int("group", 1));
  }
  op.Set(0, op.CallShaped(row.kernel, op.Arguments(0, 2), attributes, x->type.dtype, known,
                          {names::kShapeConvTranspose, {op.ShapeOf(x), op.ShapeOf(op.in(1))}, attributes}));
  return {};
}

Status LowerPool(Op& op, const Operator& row) {
  Value* x = op.in(0);
  if (x->type.rank() < 3) return op.Invalid("input {} has no spatial axes", ShapeText(x->type.dims));
  const auto spatial = static_cast<std::size_t>(x->type.rank() - 2);
  const Ints kernel = op.IntList("kernel_shape");
  const Result<Window> window = ReadWindow(op, ShapeOfInts(kernel), spatial);
  if (!window) return Forward(window);
  Attributes attributes = window->attributes();
  attributes.push_back({"kernel_shape", kernel});
  const bool ceil = op.Int("ceil_mode", 0) != 0;
  if (ceil) attributes.push_back({"ceil_mode", std::int64_t{1}});
  const Attributes of_shape = attributes;
  for (const char* name : {"count_include_pad", "p", "storage_order"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.Int(name, 0)});
  }
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = {x};
  call.attributes = attributes;
  Shape dims = {x->type.dims[0], x->type.dims[1]};
  if (ceil) {
    // The kernel says which windows count.
    Value* shape = op.ShapeValue({names::kShapePool, {op.ShapeOf(x)}, of_shape}, x->type.rank());
    if (const std::optional<Shape> known = KnownElements(shape)) {
      dims = *known;
    } else {
      for (std::size_t i = 0; i < spatial; ++i)
        dims.push_back(DimExpr::Symbol(op.lowering().graph().FreshSymbol("windows")));
      call.shapes.assign(op.Wants(1) ? 2 : 1, shape);
    }
  } else {
    for (std::size_t i = 0; i < spatial; ++i) dims.push_back(window->Out(x->type.dims[i + 2], i));
  }
  call.outputs.push_back(TensorOf(x->type.dtype, dims));
  if (op.Wants(1)) call.outputs.push_back(TensorOf(kInt64, dims));
  const std::vector<Value*> outputs = op.Call(std::move(call));
  for (std::size_t i = 0; i < outputs.size(); ++i) op.Set(static_cast<int>(i), outputs[i]);
  return {};
}

Status LowerGlobalPool(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Ints axes;
  for (int i = 2; i < x->type.rank(); ++i) axes.push_back(i);
  if (axes.empty()) return op.Invalid("X has shape {}, which has no spatial axes", ShapeText(x->type.dims));
  op.Set(0, op.Reduce(row.kernel, x, axes, true));
  return {};
}

// The root of the sum of powers. `p` was a float in operator set 1.
Status LowerGlobalLpPool(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const double p = row.until == 1 ? op.Float("p", 2) : static_cast<double>(op.Int("p", 2));
  Ints axes;
  for (int i = 2; i < x->type.rank(); ++i) axes.push_back(i);
  if (axes.empty()) return op.Invalid("X has shape {}, which has no spatial axes", ShapeText(x->type.dims));
  if (!(p > 0)) return op.Invalid("p is {}, expected a positive number", p);
  if (p == 1 || p == 2) {
    op.Set(0, op.Reduce(p == 1 ? names::kReduceL1 : names::kReduceL2, x, axes, true));
    return {};
  }
  // Powers leave the range of narrow floats soon.
  const DLDataType dtype = x->type.dtype;
  Value* wide = op.Cast(op.Unary(names::kAbs, x), dtype == kFloat64 ? kFloat64 : kFloat32);
  const auto power = [&](Value* base, double exponent) {
    return op.Apply(names::kPow, base, op.Scalar(base->type.dtype, exponent));
  };
  Value* sum = op.Reduce(names::kReduceSum, power(wide, p), axes, true);
  op.Set(0, op.Cast(power(sum, 1 / p), dtype));
  return {};
}

Status LowerMaxUnpool(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Attributes attributes;
  for (const char* name : {"kernel_shape", "strides", "pads"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.IntList(name)});
  }
  const std::vector<Value*> inputs = {x, op.in(1)};
  // Images and channels stay.
  Op::OpenShape known = Op::AllOpen(x->type.rank());
  for (std::size_t i = 0; i < known.size() && i < 2; ++i) known[i] = x->type.dims[i];
  if (op.in(2) != nullptr) {
    op.Set(0, op.CallSized(row.kernel, inputs, attributes, x->type.dtype, op.in(2), known));
    return {};
  }
  op.Set(0, op.CallShaped(row.kernel, inputs, attributes, x->type.dtype, known,
                          {names::kShapeMaxUnpool, {op.ShapeOf(x)}, attributes}));
  return {};
}

Status LowerCol2Im(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Attributes attributes;
  for (const char* name : {"strides", "dilations", "pads"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.IntList(name)});
  }
  const Result<std::int64_t> spatial = op.Length(op.in(1), "the image's shape");
  if (!spatial) return Forward(spatial);
  Op::OpenShape known(static_cast<std::size_t>(*spatial) + 2);
  known[0] = x->type.dims[0];
  op.Set(0, op.CallShaped(row.kernel, {x, op.in(1), op.in(2)}, attributes, x->type.dtype, known,
                          {names::kShapeCol2im, {op.ShapeOf(x), op.in(1), op.in(2)}, attributes}));
  return {};
}

Status LowerDeformConv(Op& op, const Operator& row) {
  Value *x = op.in(0), *w = op.in(1);
  if (x->type.rank() != 4 || w->type.rank() != 4 || op.in(2)->type.rank() != 4)
    return op.Unsupported("input {} with weights {}, expected two spatial axes", ShapeText(x->type.dims),
                          ShapeText(w->type.dims));
  if (Status fits = CheckKernelShape(op, w->type.dims); !fits) return fits;
  Attributes attributes = {{"group", op.Int("group", 1)}, {"offset_group", op.Int("offset_group", 1)}};
  for (const char* name : {"strides", "dilations", "pads"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.IntList(name)});
  }
  std::vector<Value*> inputs = {x, w, op.in(2)};
  for (const int i : {3, 4}) inputs.push_back(op.in(i) != nullptr ? op.in(i) : op.Missing(x->type.dtype));
  const Shape& of_offset = op.in(2)->type.dims;
  op.Set(0, op.Call(row.kernel, inputs, std::move(attributes),
                    TensorOf(x->type.dtype, {x->type.dims[0], w->type.dims[0], of_offset[2], of_offset[3]})));
  return {};
}

}  // namespace

Result<Value*> ConvOf(Op& op) {
  Result<Convolution> convolution = ReadConvolution(op, op.in(0), op.in(1));
  if (!convolution) return Forward(convolution);
  return op.Call(names::kConv, op.Arguments(0, 2), convolution->attributes,
                 TensorOf(op.in(0)->type.dtype, convolution->dims));
}

std::span<const Operator> ConvolutionOperators() {
  static constexpr Operator kOperators[] = {
      {"AveragePool", 1, 0, 1, 1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
       LowerPool, names::kAvgPool},
      {"Col2Im", 18, 0, 3, 3, "dilations pads strides", LowerCol2Im, names::kCol2im},
      {"Conv", 1, 0, 2, 3, "auto_pad dilations group kernel_shape pads strides", LowerConv},
      {"ConvInteger", 10, 0, 2, 4, "auto_pad dilations group kernel_shape pads strides", LowerConvInteger,
       names::kConvInteger},
      {"ConvTranspose", 1, 0, 2, 3,
       "auto_pad dilations group kernel_shape output_padding output_shape pads strides", LowerConvTranspose,
       names::kConvTranspose},
      {"DeformConv", 19, 0, 3, 5, "dilations group kernel_shape offset_group pads strides", LowerDeformConv,
       names::kDeformConv},
      {"GlobalAveragePool", 1, 0, 1, 1, "", LowerGlobalPool, names::kReduceMean},
      {"GlobalLpPool", 1, 1, 1, 1, "p", LowerGlobalLpPool},
      {"GlobalLpPool", 2, 0, 1, 1, "p", LowerGlobalLpPool},
      {"GlobalMaxPool", 1, 0, 1, 1, "", LowerGlobalPool, names::kReduceMax},
      {"LpPool", 2, 0, 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides", LowerPool,
       names::kLpPool},
      {"MaxPool", 1, 0, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
       LowerPool, names::kMaxPool},
      {"MaxUnpool", 9, 0, 2, 3, "kernel_shape pads strides", LowerMaxUnpool, names::kMaxUnpool},
      {"QLinearConv", 10, 0, 8, 9, "auto_pad dilations group kernel_shape pads strides", LowerQLinearConv,
       names::kConvInteger},
  };
  return kOperators;
}

}  // namespace rewire::compiler
