// SPDX-License-Identifier: Apache-2.0
// Transforms of signals, and n-grams of integers.
#include <algorithm>
#include <map>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/text_values.h"
#include "rewire/compiler/operators/texts.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/signal.h"

namespace rewire::compiler {
namespace {

// The axis is an attribute, and input 2 from version 20 on. Nothing if only the run knows it.
std::optional<std::int64_t> DftAxis(const Op& op) {
  if (op.opset() < 20) return op.Int("axis", 1);
  if (op.in(2) == nullptr) return std::int64_t{-2};
  const std::optional<Ints> known = KnownInts(op.in(2));
  if (!known || known->size() != 1) return std::nullopt;
  return (*known)[0];
}

Status LowerDft(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const std::optional<std::int64_t> axis = DftAxis(op);
  const std::int64_t inverse = op.Int("inverse", 0), onesided = op.Int("onesided", 0);
  Attributes attributes = {{"inverse", inverse}, {"onesided", onesided}};
  if (axis) attributes.push_back({"axis", *axis});
  std::vector<Value*> inputs = op.Arguments(0, axis ? 1 : 2), shapes = inputs;
  shapes[0] = op.ShapeOf(x);
  Op::OpenShape known = axis ? Op::Open(x->type.dims, {*axis}) : Op::AllOpen(x->type.rank());
  if (!known.empty()) known.back() = DimExpr(contract::DftParts(inverse != 0, onesided != 0));
  op.Set(0, op.CallShaped(row.kernel, inputs, attributes, x->type.dtype, known,
                          {names::kShapeDft, shapes, attributes}));
  return {};
}

// How many numbers the transform of a frame has: a frame is as long as the window, or as input 3 says.
std::optional<DimExpr> FrameBins(const Op& op, bool onesided) {
  const std::optional<Shape> given = KnownElements(op.in(3));
  std::optional<DimExpr> length;
  if (given && given->size() == 1) length = given->front();
  if (op.in(2) != nullptr && op.in(2)->type.rank() == 1) length = op.in(2)->type.dims[0];
  return length ? std::optional(contract::DftBins(*length, onesided)) : std::nullopt;
}

Status LowerStft(Op& op, const Operator& row) {
  const Attributes attributes = {{"onesided", op.Int("onesided", 1)}};
  std::vector<Value*> inputs = op.Arguments(0, 3), shapes = inputs;
  // Exporters leave out the last dimension of a real signal, and ONNX Runtime takes it so.
  Value*& signal = inputs[0];
  if (signal->type.rank() == 2) {
    Shape dims = signal->type.dims;
    dims.emplace_back(1);
    signal = op.Reshape(signal, std::move(dims));
  }
  shapes[0] = op.ShapeOf(signal);
  if (op.in(2) != nullptr) shapes[2] = op.ShapeOf(op.in(2));
  op.Set(0, op.CallShaped(
                row.kernel, inputs, attributes, op.in(0)->type.dtype,
                {signal->type.dims[0], std::nullopt, FrameBins(op, op.Int("onesided", 1) != 0), DimExpr(2)},
                {names::kShapeStft, shapes, attributes}));
  return {};
}

Status LowerMelWeightMatrix(Op& op, const Operator& row) {
  Result<DLDataType> dtype = op.DTypeAttribute("output_datatype", kFloat32);
  if (!dtype) return Forward(dtype);
  op.Set(0, op.CallShaped(row.kernel, op.Arguments(0, 4), {}, *dtype, Op::AllOpen(2),
                          {names::kShapeMelWeightMatrix, {op.in(0), op.in(1)}, {}}));
  return {};
}

Status LowerTfIdf(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Ints pool = op.IntList("pool_int64s");
  const Strings words = TextsOf(op, "pool_strings");
  if (op.lowering().strings().Has(x) == words.empty())
    return op.Invalid("the pool is {}, X is not", words.empty() ? "integers" : "strings");
  if (!words.empty()) {
    // Words become their last places in the pool, and others -1, which no n-gram has.
    std::map<std::string, std::int64_t> places;
    for (std::size_t i = 0; i < words.size(); ++i) places[words[i]] = static_cast<std::int64_t>(i);
    for (const std::string& word : words) pool.push_back(places[word]);
    x = PositionsInKeys(op, TextTensorOf(op, x), words);
  }
  const Ints indexes = op.IntList("ngram_indexes");
  if (indexes.empty() || x->type.rank() < 1 || x->type.rank() > 2)
    return op.Invalid("it has no n-grams for {}", ShapeText(x->type.dims));
  Attributes attributes = {{"mode", op.String("mode", "TF")},
                           {"min_gram_length", op.Int("min_gram_length", 1)},
                           {"max_gram_length", op.Int("max_gram_length", 1)},
                           {"max_skip_count", op.Int("max_skip_count", 0)},
                           {"ngram_counts", op.IntList("ngram_counts")},
                           {"ngram_indexes", indexes},
                           {"pool_int64s", pool}};
  if (op.HasAttribute("weights")) attributes.push_back({"weights", op.FloatList("weights")});
  Shape dims = x->type.dims;
  dims.back() = DimExpr(*std::max_element(indexes.begin(), indexes.end())) + DimExpr(1);
  op.Set(0, op.Call(row.kernel, {x}, std::move(attributes), TensorOf(kFloat32, std::move(dims))));
  return {};
}

}  // namespace

std::span<const Operator> SignalOperators() {
  static constexpr Operator kOperators[] = {
      {"DFT", 17, 19, 1, 2, "axis inverse onesided", LowerDft, names::kDft},
      {"DFT", 20, 0, 1, 3, "inverse onesided", LowerDft, names::kDft},
      {"MelWeightMatrix", 17, 0, 5, 5, "output_datatype", LowerMelWeightMatrix, names::kMelWeightMatrix},
      {"STFT", 17, 0, 2, 4, "onesided", LowerStft, names::kStft},
      {"TfIdfVectorizer", 9, 0, 1, 1,
       "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s "
       "pool_strings weights",
       LowerTfIdf, names::kTfIdf, kTakesStrings},
  };
  return kOperators;
}

}  // namespace rewire::compiler
