// SPDX-License-Identifier: Apache-2.0
// Drawn calls of elementwise kernels and of those that quantize.
#include <cmath>

#include "rewire/tests/compiler/aot/kernel_cases.h"

namespace rewire::test {
namespace {

// Kernels of one element each, with broadcast inputs.
Maker Elementwise(std::size_t inputs, double bound = 0, const std::string& attributes = {}, int least = -4,
                  float scale = 0.5F) {
  return [=](Random& random) {
    const Dims out = random.Shape(1, 4);
    Case call{attributes, {}, {Float(out)}, bound};
    const auto whole = static_cast<std::size_t>(random.Int(0, static_cast<int>(inputs) - 1));
    for (std::size_t i = 0; i < inputs; ++i) {
      call.inputs.push_back(random.Floats(i == whole ? out : random.Narrower(out), least, 4, scale));
    }
    return call;
  };
}

Maker OfIntegersToo(Maker floats) {
  return [floats = std::move(floats)](Random& random) {
    if (random.Bool()) return floats(random);
    const Dims out = random.Shape(1, 3);
    if (random.Bool()) {
      return Case{{},
                  {random.Integers<std::int8_t>(out, -128, 127),
                   random.Integers<std::int8_t>(random.Narrower(out), -128, 127)},
                  {"i8" + ShapeOf(out)}};
    }
    return Case{{},
                {random.Integers<std::int64_t>(out, -9, 9),
                 random.Integers<std::int64_t>(random.Narrower(out), -9, 9)},
                {"i64" + ShapeOf(out)}};
  };
}

// Integers of both signs, with zeros among the divisors, of one type.
Maker OfIntegers(bool are_unsigned) {
  return [=](Random& random) {
    const Dims out = random.Shape(1, 3), b = random.Narrower(out);
    const Tensor types[][2] = {
        {random.Integers<std::uint8_t>(out, 0, 255), random.Integers<std::uint8_t>(b, 0, 9)},
        {random.Integers<std::uint64_t>(out, 0, 1 << 30), random.Integers<std::uint64_t>(b, 0, 70)},
        {random.Integers<std::int8_t>(out, -128, 127), random.Integers<std::int8_t>(b, -3, 3)},
        {random.Integers<std::int32_t>(out, -70000, 70000), random.Integers<std::int32_t>(b, -3, 3)},
    };
    const Tensor(&inputs)[2] = types[random.Int(0, are_unsigned ? 1 : 3)];
    return Case{{}, {inputs[0], inputs[1]}, {TypeOf(inputs[0])}};
  };
}
Maker OfOneInteger(Maker pairs) {
  return [pairs = std::move(pairs)](Random& random) {
    Case call = pairs(random);
    call.inputs.pop_back();
    return call;
  };
}
Maker Either(Maker one, Maker other) {
  return [one = std::move(one), other = std::move(other)](Random& random) {
    return random.Bool() ? one(random) : other(random);
  };
}

Case BitShift(Random& random) {
  Case call = OfIntegers(true)(random);
  call.attributes = random.Bool() ? "direction=\"LEFT\"" : "direction=\"RIGHT\"";
  return call;
}

Case Power(Random& random) {
  const Dims out = random.Shape(1, 3);
  const Tensor exponents[] = {random.Floats(random.Narrower(out), -6, 6, 0.5F), random.Floats({}, 2, 2),
                              random.Integers<std::int32_t>(out, -3, 5),
                              random.Integers<std::int64_t>(random.Narrower(out), -3, 5)};
  const int kind = random.Int(0, 3);
  return {{}, {random.Floats(out, 1, 9, 0.5F), exponents[kind]}, {Float(out)}, kClose};
}

Maker Classification(const std::string& attributes) {
  return [=](Random& random) {
    const Dims out = random.Shape(1, 3);
    const Tensor x = random.Filled<float>(out, [&] {
      const float all[] = {NAN, INFINITY, -INFINITY, 0, 3.5F};
      return all[random.Int(0, 4)];
    });
    return Case{attributes, {x}, {"bool" + ShapeOf(out)}};
  };
}

Maker Comparison() {
  return [](Random& random) {
    const Dims out = random.Shape(1, 3);
    const std::string type = "bool" + ShapeOf(out);
    if (random.Bool()) return Case{{}, {random.Floats(out), random.Floats(random.Narrower(out))}, {type}};
    return Case{
        {}, {random.Integers<std::int32_t>(out, 0, 2), random.Integers<std::int32_t>(out, 0, 2)}, {type}};
  };
}

Maker Truths(std::size_t inputs) {
  return [=](Random& random) {
    const Dims out = random.Shape(1, 3);
    Case call{{}, {random.Truths(out)}, {"bool" + ShapeOf(out)}};
    if (inputs == 2) call.inputs.push_back(random.Truths(random.Narrower(out)));
    return call;
  };
}

Case Where(Random& random) {
  const Dims out = random.Shape(1, 3);
  Case call{{}, {random.Truths(random.Narrower(out))}, {}};
  switch (random.Int(0, 2)) {
    case 0:
      call.inputs.insert(call.inputs.end(), {random.Floats(out), random.Floats(random.Narrower(out))});
      break;
    case 1:
      call.inputs.insert(call.inputs.end(), {random.Integers<std::int8_t>(out, -9, 9),
                                             random.Integers<std::int8_t>(random.Narrower(out), -9, 9)});
      break;
    default:
      call.inputs.insert(call.inputs.end(), {random.Integers<std::int64_t>(out, -9, 9),
                                             random.Integers<std::int64_t>(random.Narrower(out), -9, 9)});
  }
  call.outputs.push_back(TypeOf(call.inputs[1]));
  return call;
}

Case Cast(Random& random) {
  const Dims out = random.Shape(1, 3);
  const Tensor inputs[] = {
      random.Filled<float>(out,
                           [&] {
                             const float all[] = {NAN, 1e30F, -1e30F, -2.75F, 300.5F, 0, 127};
                             return all[random.Int(0, 6)];
                           }),
      random.Integers<std::int64_t>(out, -300, 300), random.Integers<std::uint8_t>(out, 0, 255),
      random.Truths(out), random.Integers<std::int32_t>(out, -70000, 70000)};
  const char* const types[] = {"f32", "i64", "i32", "i8", "u8", "bool", "u32"};
  return {{}, {inputs[random.Int(0, 4)]}, {types[random.Int(0, 6)] + ShapeOf(out)}};
}

Case Fused(Random& random) {
  const char* const programs[] = {
      "mul x0 x1; add r0 0.5; max r1 x2", "sub x0 x2; mul r0 r0; add r1 x1; neg r2",
      "less x0 x1; where r0 x1 x2; clip r1 -2 1.5", "add x0 x1; relu r0; min x2 r1; clip r2 -inf inf"};
  Case call = Elementwise(3)(random);
  call.attributes = std::string("program=\"") + programs[random.Int(0, 3)] + "\"";
  return call;
}

Case FusedBytes(Random& random) {
  const Dims dims = random.Shape(1, 3);
  const bool is_signed = random.Bool(), to_bytes = random.Bool();
  const std::string zero = is_signed ? "-3" : "130";
  Case call{"program=\"dequantize x0 0.05 " + zero + "; mul r0 x1" +
                (to_bytes ? "; quantize r1 0.07 " + zero : "") + "\"",
            {is_signed ? random.Integers<std::int8_t>(dims, -128, 127)
                       : random.Integers<std::uint8_t>(dims, 0, 255),
             random.Floats(dims, -40, 40, 0.09F)},
            {(!to_bytes   ? "f32"
              : is_signed ? "i8"
                          : "u8") +
             ShapeOf(dims)}};
  return call;
}

Maker Quantization(bool to_bytes) {
  return [=](Random& random) {
    const Dims dims = random.Shape(1, 3);
    std::int64_t axis = 0;
    const std::string attribute = AxisOf(random, dims.size(), &axis);
    const Dims each = random.Bool() ? Dims{dims[static_cast<std::size_t>(axis)]} : Dims{};
    const bool is_signed = random.Bool();
    const std::string bytes = is_signed ? "i8" : "u8";
    const Tensor zero =
        is_signed ? random.Integers<std::int8_t>(each, -5, 5) : random.Integers<std::uint8_t>(each, 120, 130);
    const Tensor x = to_bytes    ? random.Floats(dims, -40, 40, 0.37F)
                     : is_signed ? random.Integers<std::int8_t>(dims, -128, 127)
                                 : random.Integers<std::uint8_t>(dims, 0, 255);
    Case call{attribute, {x, random.Floats(each, 1, 9, 0.03F)}, {(to_bytes ? bytes : "f32") + ShapeOf(dims)}};
    if (random.Bool()) call.inputs.push_back(zero);
    return call;
  };
}

Case AddQuantized(Random& random) {
  const Dims dims = random.Shape(1, 3);
  return {"a_scale=0.5, b_scale=0.3, scale=0.7, a_zero=3, b_zero=-2, zero=1, least=-100, most=120",
          {random.Integers<std::int8_t>(dims, -128, 127), random.Integers<std::int8_t>(dims, -128, 127)},
          {"i8" + ShapeOf(dims)}};
}

Case MapBytes(Random& random) {
  const Dims dims = random.Shape(1, 3);
  return {{},
          {random.Integers<std::int8_t>(dims, -128, 127), random.Integers<std::uint8_t>({256}, 0, 255)},
          {"u8" + ShapeOf(dims)}};
}

}  // namespace

void AddElementwiseCases(Makers* makers) {
  makers->insert({
      {"rewire.neg", Elementwise(1)},
      {"rewire.abs", Elementwise(1)},
      {"rewire.sign", Elementwise(1)},
      {"rewire.relu", Elementwise(1)},
      {"rewire.sigmoid", Elementwise(1, kClose)},
      {"rewire.softplus", Elementwise(1, kClose)},
      {"rewire.softsign", Elementwise(1, kClose)},
      {"rewire.floor", Elementwise(1)},
      {"rewire.ceil", Elementwise(1)},
      {"rewire.sqrt", Elementwise(1, kClose, {}, 0)},
      {"rewire.exp", Elementwise(1, kClose)},
      {"rewire.log", Elementwise(1, kClose, {}, 1)},
      {"rewire.tanh", Elementwise(1, kClose)},
      {"rewire.round", Elementwise(1)},
      {"rewire.sin", Elementwise(1, kClose)},
      {"rewire.cos", Elementwise(1, kClose)},
      {"rewire.erf", Elementwise(1, kClose)},
      {"rewire.mish", Elementwise(1, kClose)},
      {"rewire.swish", Elementwise(1, kClose)},
      {"rewire.hard_swish", Elementwise(1, kClose)},
      {"rewire.reciprocal", Elementwise(1, kClose, {}, 1)},
      {"rewire.div", Either(Elementwise(2, kClose, {}, 1), OfIntegers(false))},
      {"rewire.mod", Either(Elementwise(2, 0, {}, 1, 0.37F), OfIntegers(false))},
      {"rewire.fmod", Either(Elementwise(2, 0, {}, 1, 0.37F), OfIntegers(false))},
      {"rewire.pow", Power},
      {"rewire.bit_and", OfIntegers(false)},
      {"rewire.bit_or", OfIntegers(false)},
      {"rewire.bit_xor", OfIntegers(false)},
      {"rewire.bit_not", OfOneInteger(OfIntegers(false))},
      {"rewire.bit_shift", BitShift},
      {"rewire.selu", Elementwise(1, kClose)},
      {"rewire.isnan", Classification({})},
      {"rewire.isinf", Either(Classification("detect_negative=0"), Classification("detect_positive=0"))},
      {"rewire.tan", Elementwise(1, kClose, {}, -2)},
      {"rewire.sinh", Elementwise(1, kClose)},
      {"rewire.cosh", Elementwise(1, kClose)},
      {"rewire.asin", Elementwise(1, kClose, {}, -4, 0.25F)},
      {"rewire.acos", Elementwise(1, kClose, {}, -4, 0.25F)},
      {"rewire.atan", Elementwise(1, kClose)},
      {"rewire.asinh", Elementwise(1, kClose)},
      {"rewire.acosh", Elementwise(1, kClose, {}, 2)},
      {"rewire.atanh", Elementwise(1, kClose, {}, -3, 0.25F)},
      {"rewire.min", OfIntegersToo(Elementwise(2))},
      {"rewire.max", OfIntegersToo(Elementwise(2))},
      {"rewire.at_least", OfIntegersToo(Elementwise(2))},
      {"rewire.at_most", OfIntegersToo(Elementwise(2))},
      {"rewire.prelu", Elementwise(2)},
      {"rewire.add", OfIntegersToo(Elementwise(2))},
      {"rewire.sub", OfIntegersToo(Elementwise(2))},
      {"rewire.mul", OfIntegersToo(Elementwise(2))},
      {"rewire.leaky_relu", Elementwise(1, kClose, "alpha=0.25")},
      {"rewire.elu", Elementwise(1, kClose)},
      {"rewire.celu", Elementwise(1, kClose, "alpha=0.5")},
      {"rewire.thresholded_relu", Elementwise(1)},
      {"rewire.clip", Elementwise(1, 0, "min=-1.0")},
      {"rewire.hard_sigmoid", Elementwise(1, kClose)},
      {"rewire.shrink", Elementwise(1, 0, "bias=0.25")},
      {"rewire.gelu", Elementwise(1, kClose, "approximate=\"tanh\"")},
      {"rewire.equal", Comparison()},
      {"rewire.not_equal", Comparison()},
      {"rewire.less", Comparison()},
      {"rewire.less_equal", Comparison()},
      {"rewire.greater", Comparison()},
      {"rewire.greater_equal", Comparison()},
      {"rewire.and", Truths(2)},
      {"rewire.or", Truths(2)},
      {"rewire.xor", Truths(2)},
      {"rewire.not", Truths(1)},
      {"rewire.where", Where},
      {"rewire.cast", Cast},
      {"rewire.fused", Fused},
      {"rewire.fused", FusedBytes},
      {"rewire.quantize_linear", Quantization(true)},
      {"rewire.dequantize_linear", Quantization(false)},
      {"rewire.add_quantized", AddQuantized},
      {"rewire.map_bytes", MapBytes},
  });
}

}  // namespace rewire::test
