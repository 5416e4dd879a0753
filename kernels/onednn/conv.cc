// SPDX-License-Identifier: Apache-2.0
//
// Convolution and transposed convolution with packed weights, followed by an activation.
#include <algorithm>
#include <dnnl.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/layout_attribute.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/onednn/engine.h"
#include "rewire/kernels/onednn/fused.h"
#include "rewire/kernels/onednn/packed_weights.h"
#include "rewire/kernels/onednn/prepared.h"
#include "rewire/kernels/onednn/registry.h"

namespace rewire::kernel::onednn {
namespace {

using Desc = dnnl::memory::desc;
using LongDims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

// Packing and running must agree on all of a ConvSpec.
struct ConvSpec {
  cpu::WindowAttributes window;
  std::int64_t groups = 1;
  bool channels_last = false;
  std::vector<std::int64_t> weights;  // as ONNX has them: [M, C / group, ...], transposed [C, M / group, ...]
  std::vector<std::int64_t> sizes;    // spatial sizes of x that the layout of the weights is chosen for
  std::vector<std::int64_t> output_padding;  // of the transposed one
  bool transposed = false;

  int spatial() const { return static_cast<int>(weights.size()) - 2; }
  std::int64_t in_channels() const { return transposed ? weights[0] : weights[1] * groups; }
  std::int64_t out_channels() const { return transposed ? weights[1] * groups : weights[0]; }

  Status Read(Attributes& attributes);
  Status CheckWeights() const;
  // x and out in the order N, C, ... whatever the layout in memory.
  Status OutputDims(const cpu::Dims& x, cpu::Dims* out, cpu::Dims* before, cpu::Dims* after) const;
  Desc ImageDesc(const cpu::Dims& dims) const;
  Desc BiasDesc() const { return Desc({out_channels()}, Type::f32, Tag::a); }
  LongDims LogicalWeights() const;
  Desc PlainWeights() const;
  LongDims StridesOr1() const;
};

Status ConvSpec::Read(Attributes& attributes) {
  window.Read(attributes, false, false);
  groups = attributes.Int("group", 1, 1);
  channels_last = contract::ReadChannelsLast(attributes);
  attributes.Require("weights");
  weights = attributes.Ints("weights", {1, 1, 1});
  sizes = attributes.Ints("sizes", {});
  if (transposed) output_padding = attributes.Ints("output_padding", {});
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  for (const auto& [name, values] : {std::pair("sizes", &sizes), {"output_padding", &output_padding}}) {
    for (const std::int64_t value : *values) {
      if (value < 0 || value > kMost)
        return ValueError("attribute '", name, "' is ", ShapeView(values->data(), values->size()),
                          ", expected ints of at least 0 and at most ", kMost);
    }
  }
  if (Status s = window.Check(); !s.ok()) return s;
  return CheckWeights();
}

Status ConvSpec::CheckWeights() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const ShapeView shape(weights.data(), weights.size());
  const auto refuse = [&](const char* expected) {
    return ValueError("attribute 'weights' is ", shape, ", expected ", expected);
  };
  if (weights.size() < 3 || weights.size() > 5)
    return refuse("two channel axes and one to three spatial ones");
  std::int64_t total = 1;
  for (std::int64_t dim : weights) {
    if (dim < 1 || dim > kMost || total > kMost / dim)
      return refuse("dimensions of at least 1, 2^31 elements at most");
    total *= dim;
  }
  if (weights[0] % groups != 0) return refuse("a first dimension that is a multiple of the groups");
  const auto axes = static_cast<std::size_t>(spatial());
  if (window.auto_pad != cpu::AutoPad::kNotSet)
    return ValueError("attribute 'auto_pad' must be resolved to pads");
  if (!sizes.empty() && sizes.size() != axes)
    return ValueError("attribute 'sizes' must have ", axes, " ints");
  if (!output_padding.empty() && output_padding.size() != axes) {
    return ValueError("attribute 'output_padding' must have ", axes, " ints");
  }
  return window.CheckCounts(spatial());
}

// oneDNN takes sizes as a vector. A vector allocates, so only what makes a primitive makes one.
LongDims ToLongDims(const cpu::Dims& dims) { return {dims.view().begin(), dims.view().end()}; }

Status ConvSpec::OutputDims(const cpu::Dims& x, cpu::Dims* out, cpu::Dims* before, cpu::Dims* after) const {
  out->push_back(x[0]);
  out->push_back(out_channels());
  for (int i = 0; i < spatial(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const contract::WindowSize kernel(weights[at + 2]), input(x[i + 2]);
    const contract::WindowStep given = window.Step(at, weights.size() - 2);
    std::int64_t behind = given.after;
    std::int64_t output = 0;
    if (transposed) {
      behind -= output_padding.empty() ? 0 : output_padding[at];
      const std::int64_t covered = contract::CoveredBy(input, kernel, given).value;
      output = input.value == 0 ? 0 : covered - given.before - behind;
    } else {
      const contract::WindowSize room = contract::WindowRoom(input, kernel, given);
      output = room.value < 0 ? 0 : contract::WindowsWithin(room, given).value;
    }
    if (output < 1) {
      const std::int64_t reach = contract::WindowReach(kernel, given).value;
      return ValueError("x has size ", input.value, " along spatial axis ", i,
                        ": nothing is left of it behind a window of ", reach, " with pads ", given.before,
                        " and ", given.after);
    }
    out->push_back(output);
    before->push_back(given.before);
    after->push_back(behind);
  }
  return Status();
}

Desc ConvSpec::ImageDesc(const cpu::Dims& dims) const {
  constexpr Tag kFirst[] = {Tag::ncw, Tag::nchw, Tag::ncdhw};
  constexpr Tag kLast[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc};
  return Desc(ToLongDims(dims), Type::f32, (channels_last ? kLast : kFirst)[spatial() - 1]);
}

// Groups (where there are any), outputs, inputs, kernel.
LongDims ConvSpec::LogicalWeights() const {
  LongDims dims;
  if (groups > 1) dims.push_back(groups);
  dims.push_back(out_channels() / groups);
  dims.push_back(in_channels() / groups);
  dims.insert(dims.end(), weights.begin() + 2, weights.end());
  return dims;
}

Desc ConvSpec::PlainWeights() const {
  const LongDims dims = LogicalWeights();
  LongDims strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(spatial()); ++i) {
    strides[dims.size() - 1 - i] = step;
    step = cpu::Times(step, dims[dims.size() - 1 - i]);
  }
  // ONNX lays transposed weights out with the inputs first.
  const std::size_t outputs = groups > 1 ? 1 : 0;
  const std::size_t inner = transposed ? outputs : outputs + 1;
  const std::size_t outer = transposed ? outputs + 1 : outputs;
  strides[inner] = step;
  strides[outer] = cpu::Times(step, dims[inner]);
  if (groups > 1) strides[0] = cpu::Times(step, dims[inner], dims[outer]);
  return Desc(dims, Type::f32, strides);
}

LongDims ConvSpec::StridesOr1() const {
  return window.strides.empty() ? LongDims(static_cast<std::size_t>(spatial()), 1)
                                : LongDims(window.strides.begin(), window.strides.end());
}

// The primitive for x of these dimensions; weights in a given layout, or in the best one (Tag::any).
template <typename Forward>
Status Describe(const ConvSpec& spec, const cpu::Dims& x, const Desc& weights,
                const dnnl::primitive_attr& attributes,
                std::optional<typename Forward::primitive_desc>* desc) {
  cpu::Dims out, before, after;
  if (Status s = spec.OutputDims(x, &out, &before, &after); !s.ok()) return s;
  LongDims dilations(static_cast<std::size_t>(spec.spatial()), 0);  // oneDNN counts the gaps
  for (std::size_t i = 0; i < spec.window.dilations.size(); ++i) dilations[i] = spec.window.dilations[i] - 1;
  constexpr auto kDirect = std::is_same_v<Forward, dnnl::convolution_forward>
                               ? dnnl::algorithm::convolution_direct
                               : dnnl::algorithm::deconvolution_direct;
  const typename Forward::desc wanted(dnnl::prop_kind::forward_inference, kDirect, spec.ImageDesc(x), weights,
                                      spec.BiasDesc(), spec.ImageDesc(out), spec.StridesOr1(), dilations,
                                      ToLongDims(before), ToLongDims(after));
  desc->emplace(wanted, attributes, Engine());
  return Status();
}

// The layout for spec.sizes, or for a size that most layers of an image network have.
template <typename Forward>
Status BestLayout(const ConvSpec& spec, Desc* layout) {
  cpu::Dims x;
  x.push_back(1);
  x.push_back(spec.in_channels());
  for (int i = 0; i < spec.spatial(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    constexpr std::int64_t kUsual = 56;
    const contract::WindowStep step = spec.window.Step(at, spec.weights.size() - 2);
    const std::int64_t reach = contract::WindowReach(contract::WindowSize(spec.weights[at + 2]), step).value;
    x.push_back(std::max(reach, spec.sizes.empty() ? kUsual : spec.sizes[at]));
  }
  std::optional<typename Forward::primitive_desc> desc;
  const Desc any(spec.LogicalWeights(), Type::f32, Tag::any);
  if (Status s = Describe<Forward>(spec, x, any, UserScratch(), &desc); !s.ok()) return s;
  *layout = desc->weights_desc();
  return Status();
}

template <typename Forward>
struct PackWeights {
  static constexpr bool kTransposed = std::is_same_v<Forward, dnnl::deconvolution_forward>;
  static constexpr const char* kName = kTransposed ? names::kOneDnnPackConvTranspose : names::kOneDnnPackConv;
  ConvSpec spec;
  Desc layout;

  static Status Make(Attributes& attributes, PackWeights* pack) {
    pack->spec.transposed = kTransposed;
    if (Status s = pack->spec.Read(attributes); !s.ok()) return s;
    return Guarded([&] { return BestLayout<Forward>(pack->spec, &pack->layout); });
  }

  Status operator()(TensorView w, RewireFFIAny* result) const {
    cpu::Checks checks;
    checks.Dense("w", w).Shape("w", w, ShapeView(spec.weights.data(), spec.weights.size()));
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!w.Is<float>()) return TypeError("w has dtype ", DTypeName(w.dtype()), ", expected f32");
    return Guarded([&] { return Pack(spec.PlainWeights(), w.raw_data(), layout, result); });
  }
};

template <typename Forward>
struct Conv {
  static constexpr bool kTransposed = std::is_same_v<Forward, dnnl::deconvolution_forward>;
  static constexpr const char* kName = kTransposed ? names::kOneDnnConvTranspose : names::kOneDnnConv;
  ConvSpec spec;
  Activation activation;
  Desc layout;

  static Status Make(Attributes& attributes, Conv* conv) {
    conv->spec.transposed = kTransposed;
    conv->activation.Read(attributes);
    if (Status s = conv->spec.Read(attributes); !s.ok()) return s;
    return Guarded([&] { return BestLayout<Forward>(conv->spec, &conv->layout); });
  }

  // `bias` is required: a program without one gives zeros, and one form of every primitive is enough.
  Status operator()(TensorView x, TensorView w, TensorView bias, TensorView out) const {
    if (Status s = Check(x, w, bias, out); !s.ok()) return s;
    cpu::Dims expected, before, after;
    if (Status s = spec.OutputDims(Logical(x.dims()), &expected, &before, &after); !s.ok()) return s;
    if (spec.channels_last) {
      std::int64_t* dims = &expected[0];
      std::rotate(dims + 1, dims + 2, dims + expected.rank());
    }
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (x.size() == 0) return Status();
    return Guarded([&] { return Run(x, w, bias, out); });
  }

 private:
  Status Check(TensorView x, TensorView w, TensorView bias, TensorView out) const {
    const std::int64_t channels = spec.out_channels();
    cpu::Checks checks;
    checks.Dense("x", x).Rank("x", x, spec.spatial() + 2).Dense("bias", bias).Dense("out", out);
    checks.Shape("bias", bias, ShapeView(&channels, 1)).NoOverlap("out", out, "x", x);
    checks.SameDType("bias", bias, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<float>()) return TypeError("x has dtype ", DTypeName(x.dtype()), ", expected f32");
    const int axis = spec.channels_last ? x.ndim() - 1 : 1;
    if (x.dim(axis) != spec.in_channels()) {
      return ValueError("x has shape ", x.dims(), ", expected ", spec.in_channels(), " channels at axis ",
                        axis);
    }
    return CheckPacked("w", w, layout);
  }

  // N, C, ... of a tensor's dimensions.
  cpu::Dims Logical(ShapeView given) const {
    cpu::Dims logical(given);
    if (spec.channels_last) {
      std::int64_t* dims = &logical[0];
      std::rotate(dims + 1, dims + logical.rank() - 1, dims + logical.rank());
    }
    return logical;
  }

  Status Run(TensorView x, TensorView w, TensorView bias, TensorView out) const {
    const ProgramThreads threads;
    const std::int64_t images = x.dim(0);
    const std::int64_t of_image = out.size() / images;
    const ShapeView weights(spec.weights.data(), spec.weights.size());
    const std::int64_t taps = cpu::Product(weights, 1, spec.spatial() + 2);
    const std::int64_t most =
        std::max<std::int64_t>(1, kMostAtOnce / std::max<std::int64_t>(1, cpu::Times(of_image, taps)));
    Scratchpad scratch;
    cpu::Pace pace;
    for (std::int64_t first = 0; first < images; first += most) {
      if (first > 0 && !pace.Spend(cpu::kPace)) return cpu::Stopped();
      const std::int64_t count = std::min(most, images - first);
      Prepared* prepared = nullptr;
      if (Status s = Get(x.dims(), count, &prepared); !s.ok()) return s;
      Status s = prepared->Run(x.data<float>() + x.size() / images * first, w, bias,
                               out.data<float>() + of_image * first, scratch);
      if (!s.ok()) return s;
    }
    return Status();
  }

  // Get prepares for so many images like those of x.
  Status Get(ShapeView x, std::int64_t images, Prepared** prepared) const {
    PreparedCache& cache = PreparedCache::OfThisKernel();
    cpu::Dims dims(x);
    dims[0] = images;
    *prepared = cache.Find(dims.view());
    if (*prepared != nullptr) return Status();
    std::optional<typename Forward::primitive_desc> desc;
    dnnl::primitive_attr attributes = UserScratch();
    activation.AppendTo(&attributes);
    if (Status s = Describe<Forward>(spec, Logical(dims.view()), layout, attributes, &desc); !s.ok())
      return s;
    *prepared = cache.Add(dims.view(), Prepared::Make<Forward>(*desc));
    return Status();
  }
};

}  // namespace

std::span<const cpu::Kernel> ConvKernels() {
  constexpr const char* kAttributes =
      "weights, group = 1, strides = ones, dilations = ones, pads = zeros, layout = NCHW or NHWC, sizes = "
      "[56, ...]";
  constexpr const char* kTransposedAttributes =
      "weights, group = 1, strides = ones, dilations = ones, pads = zeros, output_padding = zeros, layout = "
      "NCHW or "
      "NHWC, sizes = [56, ...]";
  static constexpr cpu::Kernel kKernels[] = {
      cpu::Describe<PackWeights<dnnl::convolution_forward>>(
          "w", "f32", kAttributes,
          "returns w [M, C / group, ...] in the layout that conv with the same attributes reads"),
      cpu::Describe<Conv<dnnl::convolution_forward>>(
          "x, w, bias -> out", "x, bias, out f32; w u8", kAttributes,
          "as rewire.conv, then the activation (activation, alpha, beta)"),
      cpu::Describe<PackWeights<dnnl::deconvolution_forward>>(
          "w", "f32", kTransposedAttributes, "returns w [C, M / group, ...] as conv_transpose reads it"),
      cpu::Describe<Conv<dnnl::deconvolution_forward>>(
          "x, w, bias -> out", "x, bias, out f32; w u8", kTransposedAttributes,
          "transposed convolution, then the activation (activation, alpha, beta)"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::onednn
