// SPDX-License-Identifier: Apache-2.0
// Drawn calls of products, convolutions and pools.
#include "rewire/tests/compiler/aot/kernel_cases.h"

namespace rewire::test {
namespace {

// A window along one or two axes.
struct Window {
  Dims in, out, kernel, strides, dilations, pads;

  Window(Random& random, bool pads_are_small = false) {
    const int rank = random.Int(1, 2);
    Dims after;
    for (int axis = 0; axis < rank; ++axis) {
      for (;;) {
        const std::int64_t size = random.Int(1, 6);
        const std::int64_t taps = random.Int(1, 3);
        const std::int64_t stride = random.Int(1, 2);
        const std::int64_t dilation = random.Int(1, 2);
        const int most = pads_are_small ? static_cast<int>(taps) - 1 : 2;
        const std::int64_t before = random.Int(0, most);
        const std::int64_t behind = random.Int(0, most);
        const std::int64_t left = size + before + behind - ((taps - 1) * dilation + 1);
        if (left < 0) continue;
        in.push_back(size);
        kernel.push_back(taps);
        strides.push_back(stride);
        dilations.push_back(dilation);
        pads.push_back(before);
        after.push_back(behind);
        out.push_back(left / stride + 1);
        break;
      }
    }
    pads.insert(pads.end(), after.begin(), after.end());
  }
  std::int64_t taps() const { return kernel.size() == 1 ? kernel[0] : kernel[0] * kernel[1]; }
  std::string Attributes() const {
    return "strides=" + ShapeOf(strides) + ", dilations=" + ShapeOf(dilations) + ", pads=" + ShapeOf(pads);
  }
  std::string WithKernel() const { return "kernel_shape=" + ShapeOf(kernel) + ", " + Attributes(); }
  static Dims Image(std::int64_t images, std::int64_t channels, const Dims& sizes, bool is_last) {
    Dims dims = {images};
    if (!is_last) dims.push_back(channels);
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    if (is_last) dims.push_back(channels);
    return dims;
  }
};

std::string Activation(Random& random, const std::string& prefix = {}) {
  const char* const all[] = {"activation=\"none\"", "activation=\"relu\"",
                             "activation=\"clip\", {}alpha=-2.0, {}beta=3.5",
                             "activation=\"relu\", {}post_scale=0.5, {}post_shift=1.0"};
  std::string text = prefix + all[random.Int(0, 3)];
  for (std::size_t at; (at = text.find("{}")) != std::string::npos;) text.replace(at, 2, prefix);
  return text;
}

std::int64_t Rounded(std::int64_t size, std::int64_t to) { return (size + to - 1) / to * to; }

Case PackedMatmul(Random& random) {
  const std::int64_t rows = random.Int(1, 3), depth = random.Int(1, 9), columns = random.Int(1, 20);
  return {"columns=" + std::to_string(columns) + ", " + Activation(random),
          {random.Floats({rows, depth}), random.Floats({Rounded(columns, 16), depth}),
           Maybe(random, random.Floats({columns}), kFloat32),
           Maybe(random, random.Floats({rows, columns}), kFloat32)},
          {Float({rows, columns})}};
}

Case PackedConv(Random& random) {
  const Window window(random);
  const std::int64_t images = random.Int(1, 2), in = random.Int(1, 3), channels = random.Int(1, 18);
  const Dims out = Window::Image(images, channels, window.out, true);
  return {"channels=" + std::to_string(channels) + ", " + window.WithKernel() + ", " + Activation(random),
          {random.Floats(Window::Image(images, in, window.in, true)),
           random.Floats({Rounded(channels, 16), in * window.taps()}),
           Maybe(random, random.Floats({channels}), kFloat32), Maybe(random, random.Floats(out), kFloat32)},
          {Float(out)}};
}

Case PackedDepthwise(Random& random) {
  const Window window(random);
  const std::int64_t images = random.Int(1, 2), in = random.Int(1, 5), multiplier = random.Int(1, 2);
  return {"channels=" + std::to_string(in * multiplier) + ", multiplier=" + std::to_string(multiplier) +
              ", " + window.WithKernel() + ", " + Activation(random),
          {random.Floats(Window::Image(images, in, window.in, true)),
           random.Floats({window.taps(), in * multiplier}),
           Maybe(random, random.Floats({in * multiplier}), kFloat32)},
          {Float(Window::Image(images, in * multiplier, window.out, true))}};
}

Case PackedSeparable(Random& random) {
  const Window window(random);
  const std::int64_t images = random.Int(1, 2), in = random.Int(1, 5), channels = random.Int(1, 18);
  const Dims out = Window::Image(images, channels, window.out, true);
  return {"channels=" + std::to_string(channels) + ", " + window.WithKernel() + ", " + Activation(random) +
              ", " + Activation(random, "depthwise_"),
          {random.Floats(Window::Image(images, in, window.in, true)), random.Floats({window.taps(), in}),
           Maybe(random, random.Floats({in}), kFloat32), random.Floats({Rounded(channels, 16), in}),
           Maybe(random, random.Floats({channels}), kFloat32), Maybe(random, random.Floats(out), kFloat32)},
          {Float(out)}};
}

Case Conv(Random& random) {
  const Window window(random);
  const std::int64_t images = random.Int(1, 2), group = random.Int(1, 2), in = random.Int(1, 2),
                     out = group * random.Int(1, 3);
  Case call{"group=" + std::to_string(group) + ", " + window.Attributes(),
            {random.Floats(Window::Image(images, in * group, window.in, false)),
             random.Floats(Window::Image(out, in, window.kernel, false))},
            {Float(Window::Image(images, out, window.out, false))}};
  if (random.Bool()) call.inputs.push_back(random.Floats({out}));
  return call;
}

Case Gemm(Random& random) {
  const std::int64_t m = random.Int(1, 4), n = random.Int(1, 5), k = random.Int(1, 6);
  const bool left = random.Bool(), right = random.Bool();
  const Dims of_c[] = {{m, n}, {n}, {m, 1}, {1}, {}, {1, n}};
  return {"alpha=0.5, beta=2.0, transA=" + std::to_string(left) + ", transB=" + std::to_string(right),
          {random.Floats(left ? Dims{k, m} : Dims{m, k}), random.Floats(right ? Dims{n, k} : Dims{k, n}),
           random.Floats(of_c[random.Int(0, 5)])},
          {Float({m, n})}};
}

Case Dense(Random& random) {
  const std::int64_t m = random.Int(1, 4), n = random.Int(1, 5), k = random.Int(1, 6);
  const bool is_transposed = random.Bool();
  Case call{"transpose_w=" + std::to_string(is_transposed),
            {random.Floats({2, m, k}), random.Floats(is_transposed ? Dims{n, k} : Dims{k, n})},
            {Float({2, m, n})}};
  if (random.Bool()) call.inputs.push_back(random.Floats({n}));
  return call;
}

Case Matmul(Random& random) {
  const std::int64_t m = random.Int(1, 4), n = random.Int(1, 5), k = random.Int(1, 6);
  const Dims lead = random.Shape(0, 2);
  const auto of = [&](std::int64_t rows, std::int64_t columns) {
    Dims dims = lead;
    dims.insert(dims.end(), {rows, columns});
    return dims;
  };
  return {
      {}, {random.Floats(of(m, k)), random.Floats(random.Bool() ? of(k, n) : Dims{k, n})}, {Float(of(m, n))}};
}

// AddOperands draws the arguments of an integer product behind x, w and sums.
void AddOperands(Random& random, std::int64_t columns, bool is_signed, Case* call) {
  const int kind = random.Int(0, 3);  // what out holds
  const Dims one = {1};
  const Dims each = {columns};
  call->inputs.push_back(is_signed ? Maybe(random, random.Integers<std::int8_t>(one, -9, 9), kInt8)
                                   : Maybe(random, random.Integers<std::uint8_t>(one, 100, 140), kUInt8));
  call->inputs.push_back(
      Maybe(random, random.Integers<std::int8_t>(random.Bool() ? one : each, -5, 5), kInt8));
  const Tensor scale = random.Floats(random.Bool() ? one : each, 1, 9, 0.0078125F);
  const std::int64_t nothing = 0;
  call->inputs.push_back(kind == 0 ? *Tensor::Make(kFloat32, {&nothing, 1}) : scale);
  const bool whole = kind == 0 || random.Bool();
  call->inputs.push_back(whole ? Maybe(random, random.Integers<std::int32_t>(each, -900, 900), kInt32)
                               : Maybe(random, random.Floats(each), kFloat32));
  if (kind >= 2) call->attributes += ", zero=3, least=-20, most=100";
  if (kind == 3) call->attributes.replace(call->attributes.find("least=-20"), 9, "least=1");
  if (kind == 1) call->attributes += ", " + Activation(random);
  const char* const types[] = {"i32", "f32", "i8", "u8"};
  call->outputs[0] = types[kind] + call->outputs[0];
}

Tensor X(Random& random, const Dims& dims, bool is_signed) {
  return is_signed ? random.Integers<std::int8_t>(dims, -128, 127)
                   : random.Integers<std::uint8_t>(dims, 0, 255);
}

// Adds packed weights and their sums.
void AddPacked(const Tensor& w, std::int64_t columns, std::int64_t depth, std::int64_t segments, Case* call) {
  const std::string attributes = "order=\"OI\", segments=" + std::to_string(segments);
  const std::int64_t padded = segments * Rounded(depth / segments, 4);
  const Case pack{
      attributes, {w}, {"i8" + ShapeOf({Rounded(columns, 16), padded}), "i32" + ShapeOf({columns})}};
  for (std::size_t i = 0; i < 2; ++i) {
    call->inputs.push_back(
        RunInVm(Assembled(ProgramText("rewire.packed.pack_integers", pack, i)), pack.inputs));
  }
}

Case MatmulInteger(Random& random) {
  const std::int64_t rows = random.Int(1, 3), depth = random.Int(1, 9), columns = random.Int(1, 20);
  const bool is_signed = random.Bool();
  Case call{"columns=" + std::to_string(columns),
            {X(random, {rows, depth}, is_signed)},
            {ShapeOf({rows, columns})}};
  AddPacked(random.Integers<std::int8_t>({columns, depth}, -128, 127), columns, depth, 1, &call);
  AddOperands(random, columns, is_signed, &call);
  return call;
}

Case ConvInteger(Random& random) {
  const Window window(random);
  const std::int64_t images = random.Int(1, 2), in = random.Int(1, 5), channels = random.Int(1, 18);
  const bool is_signed = random.Bool();
  Case call{"channels=" + std::to_string(channels) + ", " + window.WithKernel(),
            {X(random, Window::Image(images, in, window.in, true), is_signed)},
            {ShapeOf(Window::Image(images, channels, window.out, true))}};
  const bool is_apart = window.dilations.back() != 1;
  const std::int64_t rows = window.kernel.size() == 1 ? 1 : window.kernel[0];
  AddPacked(random.Integers<std::int8_t>(Window::Image(channels, in, window.kernel, false), -128, 127),
            channels, in * window.taps(), rows * (is_apart ? window.kernel.back() : 1), &call);
  AddOperands(random, channels, is_signed, &call);
  return call;
}

Case DepthwiseInteger(Random& random) {
  const Window window(random);
  const std::int64_t images = random.Int(1, 2), channels = random.Int(1, 18);
  const bool is_signed = random.Bool();
  Case call{"channels=" + std::to_string(channels) + ", " + window.WithKernel(),
            {X(random, Window::Image(images, channels, window.in, true), is_signed)},
            {ShapeOf(Window::Image(images, channels, window.out, true))}};
  const std::int64_t rows = window.kernel.size() == 1 ? 1 : window.kernel[0];
  AddPacked(random.Integers<std::int8_t>({channels, rows, window.kernel.back()}, -128, 127), channels,
            window.taps(), rows == 1 ? 1 : window.kernel.back(), &call);
  AddOperands(random, channels, is_signed, &call);
  const std::size_t post = call.attributes.find(", post_scale");
  if (post != std::string::npos) call.attributes.erase(post);
  return call;
}

Case MaxPool(Random& random) {
  const Window window(random, true);
  const bool is_last = random.Bool();
  const Dims in = Window::Image(random.Int(1, 2), random.Int(1, 4), window.in, is_last);
  Dims out = Window::Image(in[0], is_last ? in.back() : in[1], window.out, is_last);
  const int kind = random.Int(0, 2);
  const Tensor x = kind == 0   ? random.Floats(in, -9, 9)
                   : kind == 1 ? random.Integers<std::int8_t>(in, -128, 127)
                               : random.Integers<std::uint8_t>(in, 0, 255);
  const char* const types[] = {"f32", "i8", "u8"};
  return {window.WithKernel() + ", layout=\"" + (is_last ? "NHWC" : "NCHW") + "\"",
          {x},
          {types[kind] + ShapeOf(out)}};
}

Case AvgPool(Random& random) {
  const Window window(random, true);
  const bool is_last = random.Bool();
  const Dims in = Window::Image(random.Int(1, 2), random.Int(1, 4), window.in, is_last);
  return {window.WithKernel() + ", count_include_pad=" + std::to_string(random.Bool()) + ", layout=\"" +
              (is_last ? "NHWC" : "NCHW") + "\"",
          {random.Floats(in)},
          {Float(Window::Image(in[0], is_last ? in.back() : in[1], window.out, is_last))},
          1e-6};
}

}  // namespace

void AddProductCases(Makers* makers) {
  makers->insert({
      {"rewire.packed.matmul", PackedMatmul},
      {"rewire.packed.conv", PackedConv},
      {"rewire.packed.depthwise", PackedDepthwise},
      {"rewire.packed.separable", PackedSeparable},
      {"rewire.conv", Conv},
      {"rewire.gemm", Gemm},
      {"rewire.dense", Dense},
      {"rewire.matmul", Matmul},
      {"rewire.packed.matmul_integer", MatmulInteger},
      {"rewire.packed.conv_integer", ConvInteger},
      {"rewire.packed.depthwise_integer", DepthwiseInteger},
      {"rewire.max_pool", MaxPool},
      {"rewire.avg_pool", AvgPool},
  });
}

}  // namespace rewire::test
