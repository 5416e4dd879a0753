// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/kernels/seeds.h"

#include "rewire/tests/kernels/image/encoded_pictures.h"

namespace rewire::test {
namespace {

using Shape = std::vector<std::int64_t>;

bool StartsWith(const std::string& text, const char* part) { return text.rfind(part, 0) == 0; }

Argument Of(Dice& dice, DLDataType dtype, Shape shape) {
  Argument argument;
  argument.dtype = dtype;
  argument.shape = std::move(shape);
  argument.seed = dice.Next();
  argument.fill = dice.OneIn(2) ? Fill::kOrdinary : Fill::kSmall;
  return argument;
}
Argument Ints(Dice& dice, Shape values, bool scalar = false) {
  Argument argument =
      Of(dice, {kDLInt, 64, 1}, scalar ? Shape{} : Shape{static_cast<std::int64_t>(values.size())});
  argument.values = std::move(values);
  return argument;
}
constexpr DLDataType kF32{kDLFloat, 32, 1}, kBf16{kDLBfloat, 16, 1}, kI64{kDLInt, 64, 1}, kI32{kDLInt, 32, 1},
    kI8{kDLInt, 8, 1}, kU8{kDLUInt, 8, 1};

std::int64_t RoundUp(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

void Einsum(bool shapes, Dice& dice, Call* call) {
  static const std::vector<std::pair<std::string, std::vector<Shape>>> kEquations = {
      {"ij,jk->ik", {{3, 4}, {4, 5}, {3, 5}}},
      {"i,j,k->ijk", {{2}, {3}, {4}, {2, 3, 4}}},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}, {2, 3, 5}}},
      {"ii->i", {{4, 4}, {4}}},
      {"...ij->...ji", {{2, 3, 4}, {2, 4, 3}}},
      {"a,b,c,d,e,f,g,h->", {{5}, {5}, {5}, {5}, {5}, {5}, {5}, {5}, {}}},
      {"ij->", {{3, 4}, {}}},
      {"i,i->", {{7}, {7}, {}}}};
  const auto& [equation, dims] = dice.Of(kEquations);
  call->attributes.emplace_back("equation", equation);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool is_out = i + 1 == dims.size();
    if (!shapes)
      call->arguments.push_back(Of(dice, kF32, dims[i]));
    else if (is_out)
      call->arguments.push_back(Of(dice, kI64, {static_cast<std::int64_t>(dims[i].size())}));
    else
      call->arguments.push_back(Ints(dice, dims[i]));
  }
}

Argument Numbers(Dice& dice, DLDataType dtype, Shape shape, Shape values) {
  Argument argument = Of(dice, dtype, std::move(shape));
  argument.values = std::move(values);
  return argument;
}

// Two trees: one of three nodes, and one that is a leaf.
void Trees(Dice& dice, Call* call) {
  const std::vector<std::string> aggregates = {"SUM", "AVERAGE", "MIN", "MAX"};
  const std::int64_t mode = dice.Below(6) + 8 * dice.Below(2);
  const std::int64_t rows = 1 + dice.Below(80);
  call->attributes = {{"aggregate", dice.Of(aggregates)}};
  call->arguments = {Of(dice, kF32, {rows, 2}),
                     Numbers(dice, kI32, {3, 4}, {0, mode, 1, 2, 1, 0, -1, -2, 1, 3, -2, -3}),
                     Of(dice, kF32, {3}),
                     Numbers(dice, kI32, {2}, {0, -1}),
                     Numbers(dice, kI32, {4}, {0, 2, 3, 4}),
                     Numbers(dice, kI32, {4}, {0, 1, 1, 0}),
                     Of(dice, kF32, {4}),
                     Of(dice, kF32, {2}),
                     Of(dice, kF32, {rows, 2})};
}

// Three strings, "a b", "" and "7-c", in some order.
void Texts(const std::string& name, Dice& dice, Call* call) {
  static const std::vector<std::string> kActions = {"LOWER", "UPPER"};
  const Shape bytes = {'a', ' ', 'b', '7', '-', 'c'}, offsets = {0, 3, 3, 6};
  const std::int64_t count = 1 + dice.Below(6);
  const auto add = [&](bool with_positions) {
    Shape positions;
    for (std::int64_t i = 0; i < count; ++i)
      positions.push_back(name == "text.to_number" ? 2 : dice.Below(3));
    if (with_positions) call->arguments.push_back(Ints(dice, positions));
    call->arguments.push_back(Ints(dice, offsets));
    call->arguments.push_back(Numbers(dice, kU8, {6}, bytes));
    std::int64_t length = 0;
    for (const std::int64_t at : positions) length += at == 1 ? 0 : 3;
    return length;
  };
  std::int64_t length = add(true);
  const bool makes_offsets = name.ends_with("_offsets");
  DLDataType dtype = makes_offsets ? kI64 : kU8;
  std::int64_t size = makes_offsets ? count + 1 : 0;
  if (StartsWith(name, "text.concat") || name == "text.equal") length += add(true);
  if (name == "text.find") (void)add(false);
  if (StartsWith(name, "text.change_case")) call->attributes = {{"action", dice.Of(kActions)}};
  if (name == "re2.full_match") call->attributes = {{"pattern", std::string("[a-z ]*")}};
  if (StartsWith(name, "text.split")) call->attributes = {{"delimiter", std::string("#")}};
  if (name == "text.split_offsets") call->arguments.push_back(Ints(dice, {1}));
  const bool has_bools = name == "text.equal" || name == "re2.full_match";
  const bool has_numbers =
      name == "text.check" || name == "text.find" || name == "text.rank" || name == "text.split_counts";
  if (has_bools || has_numbers || name == "text.to_number") {
    dtype = has_bools ? DLDataType{6, 8, 1} : has_numbers ? kI64 : kF32;
    size = count;
  }
  if (!makes_offsets && size == 0) size = length;
  call->arguments.push_back(Of(dice, dtype, {size}));
  if (StartsWith(name, "text.from_number")) {
    Shape digits(static_cast<std::size_t>(count), 7);
    call->arguments = {Ints(dice, digits), Of(dice, dtype, {makes_offsets ? count + 1 : count})};
  }
}

// A picture that is whole, or with a byte changed or its end cut off.
void EncodedFile(Dice& dice, Call* call) {
  static const std::vector<std::string> kFormats = {"RGB", "BGR", "Grayscale"};
  const std::int64_t count = std::ssize(kPictures);
  const std::vector<std::uint8_t> file =
      BytesOfDigits(kPictures[static_cast<std::size_t>(dice.Below(count))].file);
  Shape bytes(file.begin(), file.end());
  if (dice.OneIn(2)) bytes[static_cast<std::size_t>(dice.Below(std::ssize(bytes)))] = dice.Below(256);
  if (dice.OneIn(4)) bytes.resize(static_cast<std::size_t>(1 + dice.Below(std::ssize(bytes))));
  call->attributes = {{"pixel_format", dice.Of(kFormats)}};
  const std::int64_t size = std::ssize(bytes);
  call->arguments = {Numbers(dice, kU8, {size}, std::move(bytes))};
}

void TfIdf(Dice& dice, Call* call) {
  const std::vector<std::string> modes = {"TF", "IDF", "TFIDF"};
  call->attributes = {{"mode", dice.Of(modes)},
                      {"min_gram_length", std::int64_t{1}},
                      {"max_gram_length", std::int64_t{2}},
                      {"max_skip_count", std::int64_t{dice.Below(4)}},
                      {"ngram_counts", Shape{0, 3}},
                      {"ngram_indexes", Shape{0, 1, 2, 3, 4}},
                      {"pool_int64s", Shape{1, 2, 3, 1, 2, 2, 3}}};
  call->arguments = {Of(dice, dice.OneIn(2) ? kI64 : kI32, {2, 6}), Of(dice, kF32, {2, 5})};
}

// Two dimensions in, their product and sum out.
void Evaluate(Dice& dice, Call* call) {
  call->attributes = {{"program", Shape{1, 0, 0, 1, 0, 1, 3, 7, 1, 0, 0, 0, 2, 2, 7}},
                      {"element_bytes", std::int64_t{4}}};
  call->arguments = {Ints(dice, {3, 5}), Of(dice, kI64, {2}), Of(dice, kI64, {})};
}
void EvaluateSizes(Dice& dice, Call* call) {
  Evaluate(dice, call);
  call->attributes[1] = {"outputs", Shape{1, -1}};
  call->arguments = {Ints(dice, {3, 5}), Of(dice, kI64, {1}), Of(dice, kI64, {})};
}
void LayOut(Dice& dice, Call* call) {
  call->attributes = {
      {"program", Shape{1, 0, 0, 7, 0, 100, 7}}, {"blocks", Shape{0, 0, 1, 1, 0}}, {"offsets", Shape{1}}};
  call->arguments = {Ints(dice, {3, 5}), Of(dice, kI64, {}), Of(dice, kI64, {})};
}

// A sum that is doubled in place beside the softmax of a view.
void Branches(Dice& dice, Call* call) {
  call->attributes = {{"inputs", std::int64_t{2}},
                      {"outputs", Shape{0, 1}},
                      {"kernels", std::string("rewire.add rewire.softmax rewire.add")},
                      {"calls", Shape{0, 3, 0, 1, 2, 1, 2, 4, 3, 0, 3, 2, 2, 2}},
                      {"views", Shape{0, 2, 2, 3}},
                      {"1.axis", std::int64_t{-1}}};
  call->arguments = {Of(dice, kF32, {6}), Of(dice, kF32, {6}), Of(dice, kF32, {6}), Of(dice, kF32, {2, 3})};
}

void PackedMatMul(bool integer, Dice& dice, Call* call) {
  const std::int64_t rows = dice.Below(9), depth = 1 + dice.Below(40), columns = 1 + dice.Below(50);
  call->attributes = {{"columns", columns}};
  if (!integer) {
    const Argument w = dice.OneIn(2) ? Of(dice, kF32, {RoundUp(columns, 16), depth})
                                     : Of(dice, kBf16, {RoundUp(columns, 16), RoundUp(depth, 2)});
    call->arguments = {Of(dice, kF32, {rows, depth}), w, Of(dice, kF32, {columns}),
                       Of(dice, kF32, {rows, columns}), Of(dice, kF32, {rows, columns})};
    return;
  }
  call->arguments = {Of(dice, kU8, {rows, depth}), Of(dice, kI8, {RoundUp(columns, 16), RoundUp(depth, 4)}),
                     Of(dice, kI32, {columns}),    Of(dice, kU8, {}),
                     Of(dice, kI8, {columns}),     Of(dice, kF32, {columns}),
                     Of(dice, kI32, {columns}),    Of(dice, kU8, {rows, columns})};
}

void PackedBytes(Dice& dice, Call* call) {
  const std::int64_t rows = dice.Below(9), depth = 1 + dice.Below(40), columns = 1 + dice.Below(50);
  call->attributes = {{"columns", columns}};
  call->arguments = {Of(dice, kF32, {rows, depth}),  Of(dice, kI8, {RoundUp(columns, 16), RoundUp(depth, 4)}),
                     Of(dice, kI32, {columns}),      Of(dice, kF32, {columns}),
                     Of(dice, kF32, {columns}),      Of(dice, kF32, {rows, columns}),
                     Of(dice, kF32, {rows, columns})};
}

void PackedConv(const std::string& kernel, Dice& dice, Call* call) {
  const bool depthwise = StartsWith(kernel, "rewire.packed.depthwise"),
             integer = kernel.find("_integer") != std::string::npos;
  const std::int64_t size = 3 + dice.Below(8), side = 1 + dice.Below(3), in = 1 + dice.Below(20);
  const std::int64_t out = depthwise ? in : 1 + dice.Below(40), left = size - side + 1;
  call->attributes = {{"channels", out}, {"kernel_shape", Shape{side, side}}};
  const Shape image = {2, size, size, in}, result = {2, left, left, out};
  if (integer) {
    const std::int64_t row = depthwise ? side : side * in;
    call->arguments = {Of(dice, kU8, image),  Of(dice, kI8, {RoundUp(out, 16), side * RoundUp(row, 4)}),
                       Of(dice, kI32, {out}), Of(dice, kU8, {}),
                       Of(dice, kI8, {out}),  Of(dice, kF32, {out}),
                       Of(dice, kF32, {out}), Of(dice, dice.OneIn(2) ? kF32 : kU8, result)};
    return;
  }
  const Argument w = depthwise       ? Of(dice, kF32, {side * side, out})
                     : dice.OneIn(2) ? Of(dice, kF32, {RoundUp(out, 16), side * side * in})
                                     : Of(dice, kBf16, {RoundUp(out, 16), side * side * RoundUp(in, 2)});
  call->arguments = {Of(dice, kF32, image), w, Of(dice, kF32, {out})};
  if (!depthwise) call->arguments.push_back(Of(dice, kF32, result));
  call->arguments.push_back(Of(dice, kF32, result));
}

// Programs with inputs that are broadcast in every way.
void FusedProgram(Dice& dice, Call* call) {
  static const std::vector<std::string> kPrograms = {
      "mul x0 x1; add r0 x2; tanh r1", "add x0 1.5; sqrt x1; prelu r0 r1; sub r2 x2",
      "less x0 x1; where r0 x2 -inf", "clip x0 -1 6; mul r0 x1; mul r1 r1; add r2 x2"};
  const std::int64_t rows = 1 + dice.Below(5), columns = 1 + dice.Below(dice.OneIn(4) ? 1500 : 40);
  const Shape out = {rows, 3, columns};
  const std::vector<Shape> shapes = {out, {columns}, {3, 1}, {rows, 1, columns}, {}};
  call->attributes = {{"program", dice.Of(kPrograms)}};
  call->arguments = {Of(dice, kF32, out), Of(dice, kF32, dice.Of(shapes)), Of(dice, kF32, dice.Of(shapes)),
                     Of(dice, kF32, out)};
}

void PackedWinograd(Dice& dice, Call* call) {
  const std::int64_t size = 3 + dice.Below(12), in = 1 + dice.Below(20), out = 1 + dice.Below(40);
  const std::int64_t step = 1 + dice.Below(3), pad = step - 1 + dice.Below(2), left = size + 2 * (pad - step);
  if (dice.OneIn(2)) {
    const std::int64_t taps = 1 + dice.Below(4), stride = 1 + dice.Below(3), planes = 1 + dice.Below(9);
    const std::int64_t before = taps - 1 + dice.Below(2), planes_left = (planes + before - taps) / stride + 1;
    const Shape result = {2, planes_left, left, left, out};
    call->attributes = {{"channels", out},
                        {"kernel_shape", Shape{taps, 3, 3}},
                        {"strides", Shape{stride, 1, 1}},
                        {"dilations", Shape{1, step, step}},
                        {"pads", Shape{before, pad, pad, 0, pad, pad}}};
    call->arguments = {Of(dice, kF32, {2, planes, size, size, in}),
                       Of(dice, kF32, {36, RoundUp(out, 16), taps * in}), Of(dice, kF32, {out}),
                       Of(dice, kF32, result), Of(dice, kF32, result)};
    return;
  }
  call->attributes = {{"channels", out},
                      {"kernel_shape", Shape{3, 3}},
                      {"dilations", Shape{step, step}},
                      {"pads", Shape{pad, pad, pad, pad}}};
  call->arguments = {Of(dice, kF32, {2, size, size, in}), Of(dice, kF32, {36, RoundUp(out, 16), in}),
                     Of(dice, kF32, {out}), Of(dice, kF32, {2, left, left, out}),
                     Of(dice, kF32, {2, left, left, out})};
}

void PackedConvTranspose(Dice& dice, Call* call) {
  const auto rank = static_cast<std::size_t>(1 + dice.Below(3));
  const std::int64_t in = 1 + dice.Below(20), out = 1 + dice.Below(dice.OneIn(2) ? 3 : 40);
  Shape x = {2}, y = {2}, window;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    window.push_back(1 + dice.Below(3));
    x.push_back(1 + dice.Below(8));
    y.push_back(x.back() * window.back());
    if (i + 1 < rank) rows *= window.back();
  }
  x.push_back(in);
  y.push_back(out);
  call->attributes = {{"channels", out}, {"kernel_shape", window}};
  call->arguments = {Of(dice, kF32, x), Of(dice, kF32, {rows * RoundUp(window.back() * out, 16), in}),
                     Of(dice, kF32, {out}), Of(dice, kF32, y)};
}

void Convolution(bool transposed, bool quantized, Dice& dice, Call* call) {
  const std::int64_t groups = 1 + dice.Below(2), in = groups * (1 + dice.Below(3)),
                     out = groups * (1 + dice.Below(6));
  const std::int64_t size = 3 + dice.Below(6), side = 1 + dice.Below(3);
  const auto rank = static_cast<std::size_t>(1 + dice.Below(3));
  Shape x = {2, in}, w = transposed ? Shape{in, out / groups} : Shape{out, in / groups}, y = {2, out};
  for (std::size_t i = 0; i < rank; ++i) {
    x.push_back(size);
    w.push_back(side);
    y.push_back(transposed ? size + side - 1 : size - side + 1);
  }
  call->attributes = {{"group", groups}};
  if (quantized) {
    call->arguments = {Of(dice, kU8, x), Of(dice, kI8, w), Of(dice, kU8, {}), Of(dice, kI8, {}),
                       Of(dice, kI32, y)};
    return;
  }
  call->arguments = {Of(dice, kF32, x), Of(dice, kF32, w), Of(dice, kF32, {out}), Of(dice, kF32, y)};
}

// x [steps, batch, inputs] and the rest; with and without lengths.
void Recurrent(std::int64_t gates, Dice& dice, Call* call) {
  const std::int64_t steps = 1 + dice.Below(5), batch = 1 + dice.Below(3), inputs = 1 + dice.Below(5),
                     hidden = dice.OneIn(2) ? 32 : 3;
  const std::int64_t directions = dice.OneIn(3) ? 2 : 1;
  if (directions == 2) call->attributes.emplace_back("direction", "bidirectional");
  const bool packed = dice.OneIn(2);
  const std::int64_t width = gates * hidden, stored = directions * RoundUp(width, 16);
  if (packed) call->attributes.emplace_back("packed", std::int64_t{1});
  Argument lengths = Of(dice, kI32, {batch});
  lengths.values = {dice.Below(steps + 1), steps, 0};
  lengths.missing = dice.OneIn(2);
  const Shape state = {directions, batch, hidden};
  call->arguments = {Of(dice, kF32, {steps, batch, inputs}),
                     Of(dice, kF32, packed ? Shape{stored, inputs} : Shape{directions, width, inputs}),
                     Of(dice, kF32, packed ? Shape{stored, hidden} : Shape{directions, width, hidden}),
                     Of(dice, kF32, {directions, 2 * width}),
                     lengths,
                     Of(dice, kF32, state)};
  if (gates == 4) {
    call->arguments.push_back(Of(dice, kF32, state));
    call->arguments.push_back(Of(dice, kF32, {directions, 3 * hidden}));
    call->arguments.back().missing = dice.OneIn(2);
  }
  call->arguments.push_back(Of(dice, kF32, {steps, directions, batch, hidden}));
  for (int i = 0; i < (gates == 4 ? 2 : 1); ++i) call->arguments.push_back(Of(dice, kF32, state));
}

void LstmBytes(Dice& dice, Call* call) {
  const std::int64_t steps = 1 + dice.Below(5), batch = 1 + dice.Below(6), inputs = 1 + dice.Below(40),
                     hidden = dice.OneIn(2) ? 32 : 3, directions = dice.OneIn(3) ? 2 : 1, width = 4 * hidden;
  call->attributes = {{"hidden_size", hidden}};
  if (directions == 2) call->attributes.emplace_back("direction", "bidirectional");
  const std::int64_t stored = directions * RoundUp(width, 16);
  const Shape state = {directions, batch, hidden}, scales = {directions, width};
  call->arguments = {Of(dice, kF32, {steps, batch, inputs}),
                     Of(dice, kI8, {stored, RoundUp(inputs, 4)}),
                     Of(dice, kI8, {stored, RoundUp(hidden, 4)}),
                     Of(dice, kF32, {directions, 2 * width}),
                     Of(dice, kI32, {batch}),
                     Of(dice, kF32, state),
                     Of(dice, kF32, state),
                     Of(dice, kF32, scales),
                     Of(dice, kF32, scales),
                     Of(dice, kF32, {steps, directions, batch, hidden}),
                     Of(dice, kF32, state),
                     Of(dice, kF32, state)};
  call->arguments[4].missing = dice.OneIn(2);
  call->arguments[4].values = {dice.Below(steps + 1), steps, 0, 0, 1, steps};
}

void Regions(bool align, Dice& dice, Call* call) {
  const std::int64_t count = dice.Below(4);
  call->arguments = {Of(dice, kF32, {2, 3, 8, 8}), Of(dice, kF32, {count, align ? 4 : 5})};
  call->arguments[1].fill = Fill::kSmall;
  if (align) {
    call->attributes = {{"output_height", std::int64_t{2}}, {"output_width", std::int64_t{3}}};
    call->arguments.push_back(Ints(dice, Shape(static_cast<std::size_t>(count), 1)));
  } else {
    call->arguments[1].values = {1, 0, 0, 4, 5};
  }
  call->arguments.push_back(Of(dice, kF32, {count, 3, 2, 3}));
}

void OneDnn(const std::string& kernel, Dice& dice, Call* call) {
  const bool packs = kernel.find("pack_") != std::string::npos;
  if (kernel.find("matmul") != std::string::npos) {
    call->attributes = {{"depth", std::int64_t{5}}, {"columns", std::int64_t{7}}};
    call->arguments = {Of(dice, kF32, packs ? Shape{5, 7} : Shape{3, 5})};
  } else {
    const bool transposed = kernel.find("transpose") != std::string::npos;
    call->attributes = {{"weights", transposed ? Shape{4, 6, 3, 3} : Shape{6, 4, 3, 3}}};
    call->arguments = {
        Of(dice, kF32, packs ? (transposed ? Shape{4, 6, 3, 3} : Shape{6, 4, 3, 3}) : Shape{1, 4, 9, 9})};
  }
  // Others are put right by what the kernel expects.
  for (int i = packs ? 1 : 4; i > 1; --i) call->arguments.push_back(Of(dice, kF32, {7}));
}

void MelWeights(bool shape, Dice& dice, Call* call) {
  call->arguments = {Ints(dice, {1 + dice.Below(6)}, true), Ints(dice, {2 + dice.Below(40)}, true)};
  if (!shape) {
    for (const std::int64_t hertz : {8000, 0, 4000}) {
      call->arguments.push_back(Of(dice, kF32, {}));
      call->arguments.back().values = {hertz};
    }
    call->arguments.push_back(
        Of(dice, kF32, {call->arguments[1].values[0] / 2 + 1, call->arguments[0].values[0]}));
  } else {
    call->arguments.push_back(Of(dice, kI64, {2}));
  }
}

void Columns(bool shape, Dice& dice, Call* call) {
  call->arguments = {shape ? Ints(dice, {1, 8, 9}) : Of(dice, kF32, {1, 8, 9}), Ints(dice, {4, 4}),
                     Ints(dice, {2, 2}), shape ? Of(dice, kI64, {4}) : Of(dice, kF32, {1, 2, 4, 4})};
}

void Suppression(bool shape, Dice& dice, Call* call) {
  call->arguments = {Of(dice, kF32, {2, 6, 4}),
                     Of(dice, kF32, {2, 3, 6}),
                     Ints(dice, {dice.Below(5)}, true),
                     Of(dice, kF32, {}),
                     Of(dice, kF32, {}),
                     shape ? Of(dice, kI64, {2}) : Of(dice, kI64, {4, 3})};
  call->arguments[3].missing = dice.OneIn(2);
  call->arguments[4].missing = dice.OneIn(2);
}

// Between a narrow type and another one, or two narrow ones.
void CastNarrow(Dice& dice, Call* call) {
  static const std::vector<DLDataType> kNarrow = {
      {kDLInt, 4, 1}, {kDLUInt, 4, 1}, {kDLInt, 2, 1}, {kDLUInt, 2, 1}, {10, 8, 1},
      {11, 8, 1},     {12, 8, 1},      {13, 8, 1},     {14, 8, 1},      {17, 4, 1}};
  static const std::vector<DLDataType> kOther = {kF32, kI64, kI8, {kDLFloat, 16, 1}, {6, 8, 1}};
  const Shape shape = {dice.Below(40), 3};
  const DLDataType narrow = dice.Of(kNarrow), other = dice.Of(dice.OneIn(4) ? kNarrow : kOther);
  const bool from = dice.OneIn(2);
  call->arguments = {Of(dice, from ? narrow : other, shape), Of(dice, from ? other : narrow, shape)};
}

void BitCast(Dice& dice, Call* call) {
  const Shape shape = {dice.Below(40), 3};
  call->arguments = {Of(dice, kF32, shape), Of(dice, dice.OneIn(2) ? kI32 : kF32, shape)};
}

void LinearAttention(Dice& dice, Call* call) {
  const std::int64_t heads = 1 + dice.Below(3), group = 1 + dice.Below(2), batch = 1 + dice.Below(2);
  const std::int64_t steps = dice.Below(6), key = 1 + dice.Below(5), value = 1 + dice.Below(5);
  call->attributes = {{"q_heads", heads * group}, {"kv_heads", heads}};
  const Shape state = {batch, heads, key, value};
  call->arguments = {Of(dice, kF32, {batch, steps, heads * group * key}),
                     Of(dice, kF32, {batch, steps, heads * key}),
                     Of(dice, kF32, {batch, steps, heads * value}),
                     Of(dice, kF32, state),
                     Of(dice, kF32, {batch, steps, dice.OneIn(2) ? heads : heads * key}),
                     Of(dice, kF32, {batch, steps, dice.OneIn(2) ? heads : 1}),
                     Of(dice, kF32, {batch, steps, heads * group * value}),
                     Of(dice, kF32, state)};
  for (std::size_t i = 3; i < 6; ++i) call->arguments[i].missing = dice.OneIn(3);
}

void DeformConv(Dice& dice, Call* call) {
  const std::int64_t groups = 1 + dice.Below(2), of_offset = 1 + dice.Below(2);
  const std::int64_t in = groups * of_offset * (1 + dice.Below(2)), out = groups * (1 + dice.Below(3));
  const std::int64_t size = 3 + dice.Below(4), side = 1 + dice.Below(3), left = size - side + 1;
  call->attributes = {{"group", groups}, {"offset_group", of_offset}};
  call->arguments = {Of(dice, kF32, {2, in, size, size}),
                     Of(dice, kF32, {out, in / groups, side, side}),
                     Of(dice, kF32, {2, of_offset * side * side * 2, left, left}),
                     Of(dice, kF32, {out}),
                     Of(dice, kF32, {2, of_offset * side * side, left, left}),
                     Of(dice, kF32, {2, out, left, left})};
  for (std::size_t i = 3; i < 5; ++i) call->arguments[i].missing = dice.OneIn(3);
}

void Arange(bool shape, Dice& dice, Call* call) {
  const std::int64_t count = dice.Below(20);
  call->arguments = {Ints(dice, {3}, true), Ints(dice, {3 + 2 * count}, true), Ints(dice, {2}, true),
                     Of(dice, kI64, {shape ? 1 : count})};
}

}  // namespace

bool SeedOf(const std::string& kernel, Dice& dice, Call* call) {
  const bool shape = StartsWith(kernel, "rewire.shape.");
  const std::string name = kernel.substr(shape ? 13 : kernel.rfind("rewire.", 0) == 0 ? 7 : 0);
  if (name == "einsum") return Einsum(shape, dice, call), true;
  if (name == "tfidf") return TfIdf(dice, call), true;
  if (name == "image.decode") return EncodedFile(dice, call), true;
  if (name == "tree_ensemble") return Trees(dice, call), true;
  if (StartsWith(name, "text.") || StartsWith(name, "re2.")) return Texts(name, dice, call), true;
  if (name == "squared_distance") {
    call->arguments = {Of(dice, kF32, {3, 4}), Of(dice, kF32, {5, 4}), Of(dice, kF32, {3, 5})};
    return true;
  }
  if (name == "pairwise_coupling") {
    const std::int64_t classes = 2 + dice.Below(5);
    call->arguments = {Of(dice, kF32, {3, classes * (classes - 1) / 2}), Of(dice, kF32, {3, classes})};
    return true;
  }
  if (kernel == "rewire.branches") return Branches(dice, call), true;
  if (name == "seq.checked") {
    call->attributes = {{"dtype", Shape{kDLFloat, 32, 1}}};
    call->arguments = {Of(dice, kF32, {2, 3}), Ints(dice, {2, dice.OneIn(2) ? 3 : -1})};
    call->arguments[1].missing = dice.OneIn(3);
    return true;
  }
  if (shape && name == "eval") return Evaluate(dice, call), true;
  if (shape && name == "sizes") return EvaluateSizes(dice, call), true;
  if (shape && name == "layout") return LayOut(dice, call), true;
  if (name == "packed.matmul" || name == "packed.matmul_integer")
    return PackedMatMul(name != "packed.matmul", dice, call), true;
  if (name == "max_unpool" && !shape) {
    call->attributes = {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}};
    call->arguments = {Of(dice, kF32, {1, 1, 2, 2}), Of(dice, kI64, {1, 1, 2, 2}),
                       Of(dice, kF32, {1, 1, 4, 4})};
    call->arguments[1].values = {0, 3, 10, 15};
    return true;
  }
  if (name == "packed.matmul_bytes") return PackedBytes(dice, call), true;
  if (name == "fused") return FusedProgram(dice, call), true;
  if (name == "packed.winograd") return PackedWinograd(dice, call), true;
  if (name == "packed.conv_transpose") return PackedConvTranspose(dice, call), true;
  if (name == "packed.winograd_weights") {
    const std::int64_t in = 1 + dice.Below(20), out = 1 + dice.Below(40), taps = 1 + dice.Below(3);
    const Shape w = dice.OneIn(2) && taps == 1 ? Shape{out, in, 3, 3} : Shape{out, in, taps, 3, 3};
    call->arguments = {Of(dice, dice.OneIn(2) ? kF32 : kBf16, w),
                       Of(dice, kF32, {36, RoundUp(out, 16), taps * in})};
    return true;
  }
  if (name == "packed.conv" || name == "packed.conv_integer" || name == "packed.depthwise" ||
      name == "packed.depthwise_integer")
    return PackedConv(kernel, dice, call), true;
  if (!shape && (name == "conv" || name == "conv_transpose" || name == "conv_integer"))
    return Convolution(name == "conv_transpose", name == "conv_integer", dice, call), true;
  if (name == "rnn" || name == "gru" || name == "lstm")
    return Recurrent(name == "rnn" ? 1 : name == "gru" ? 3 : 4, dice, call), true;
  if (name == "lstm_bytes") return LstmBytes(dice, call), true;
  if (shape && name == "stft") {
    call->arguments = {Ints(dice, {2, 20, 1}), Ints(dice, {1 + dice.Below(5)}, true), Ints(dice, {8}),
                       Ints(dice, {8}, true), Of(dice, kI64, {4})};
    return true;
  }
  if (shape && name == "pool") {
    const std::int64_t size = 3 + dice.Below(8), side = 1 + dice.Below(3);
    call->attributes = {{"kernel_shape", Shape{side, side}}};
    call->arguments = {Ints(dice, {2, 3, size, size}), Of(dice, kI64, {4})};
    return true;
  }
  if (shape && name == "roi_align") {
    call->arguments = {Ints(dice, {2, 3, 8, 8}), Ints(dice, {5, 4}), Of(dice, kI64, {4})};
    return true;
  }
  if (!shape && (name == "roi_align" || name == "max_roi_pool"))
    return Regions(name == "roi_align", dice, call), true;
  if (StartsWith(name, "onednn.")) return OneDnn(kernel, dice, call), true;
  if (name == "mel_weight_matrix") return MelWeights(shape, dice, call), true;
  if (name == "col2im") return Columns(shape, dice, call), true;
  if (name == "nms") return Suppression(shape, dice, call), true;
  if (name == "cast_narrow") return CastNarrow(dice, call), true;
  if (name == "bit_cast") return BitCast(dice, call), true;
  if (name == "linear_attention") return LinearAttention(dice, call), true;
  if (name == "deform_conv") return DeformConv(dice, call), true;
  if (name == "arange") return Arange(shape, dice, call), true;
  return !shape && LanguageSeedOf(name, dice, call);
}

}  // namespace rewire::test
