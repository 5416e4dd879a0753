// SPDX-License-Identifier: Apache-2.0
// Operators of domain ai.onnx.ml: features and linear models, as scikit-learn's converters write them.
#include <algorithm>
#include <cmath>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/building_blocks.h"
#include "rewire/compiler/operators/float_constant.h"
#include "rewire/compiler/operators/machine_learning/classes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

Status LowerBinarizer(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  // float32 would round what lies next to the threshold in the other types.
  const DLDataType dtype = x->type.dtype == kFloat32 ? kFloat32 : kFloat64;
  Value* threshold = op.Scalar(dtype, op.Float("threshold", 0));
  op.Set(0, op.Cast(op.Compare(names::kGreater, op.Cast(x, dtype), threshold), x->type.dtype));
  return {};
}

// A list of one number, or of one for each feature; nothing for an empty one.
Result<Value*> PerFeature(Op& op, const char* name, const Shape& x) {
  const std::vector<double> values = op.FloatList(name);
  if (values.empty()) return static_cast<Value*>(nullptr);
  if (values.size() != 1 && !x.empty() && x.back().IsConstant() &&
      !x.back().Is(static_cast<std::int64_t>(values.size()))) {
    return op.Invalid("{} has {} numbers for {} features", name, values.size(), x.back().text());
  }
  return FloatsValue(op, values);
}

Status LowerScaler(Op& op, const Operator& /*row*/) {
  Value* x = op.Cast(op.in(0), kFloat32);
  const Result<Value*> offset = PerFeature(op, "offset", x->type.dims);
  if (!offset) return Forward(offset);
  const Result<Value*> scale = PerFeature(op, "scale", x->type.dims);
  if (!scale) return Forward(scale);
  if (*offset != nullptr) x = op.Apply(names::kSub, x, *offset);
  if (*scale != nullptr) x = op.Apply(names::kMul, x, *scale);
  op.Set(0, x);
  return {};
}

// Rows over their largest element, the sum of their magnitudes or their length. Where that is 0 they stay.
Status LowerNormalizer(Op& op, const Operator& /*row*/) {
  Value* x = op.Cast(op.in(0), kFloat32);
  const std::string norm = op.String("norm", "MAX");
  const char* kernel = norm == "MAX"  ? names::kReduceMax
                       : norm == "L1" ? names::kReduceL1
                       : norm == "L2" ? names::kReduceL2
                                      : nullptr;
  if (kernel == nullptr) return op.Invalid("norm is '{}', expected MAX, L1 or L2", norm);
  if (x->type.rank() < 1 || x->type.rank() > 2)
    return op.Invalid("X has shape {}, expected rank 1 or 2", ShapeText(x->type.dims));
  Value* size = op.Reduce(kernel, x, {x->type.rank() - 1}, true);
  Value* none = op.Compare(names::kEqual, size, op.Scalar(kFloat32, 0));
  Value* divisor = op.Call(names::kWhere, {none, op.Scalar(kFloat32, 1), size}, {}, size->type);
  op.Set(0, op.Apply(names::kDiv, x, divisor));
  return {};
}

Status LowerImputer(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  if (!IsFloat(x->type.dtype)) {
    const Ints values = op.IntList("imputed_value_int64s");
    if (values.empty()) return op.Unsupported("no imputed_value_int64s for {}", DTypeName(x->type.dtype));
    Value* replaced = op.Scalar(x->type.dtype, 0);
    if (const std::int64_t which = op.Int("replaced_value_int64", 0); which != 0)
      replaced = op.Cast(op.IntValue(which), x->type.dtype);
    Value* is_replaced = op.Compare(names::kEqual, x, replaced);
    op.Set(0, op.Call(names::kWhere, {is_replaced, op.Cast(op.IntsValue(values), x->type.dtype), x}, {},
                      x->type));
    return {};
  }
  const Result<Value*> values = PerFeature(op, "imputed_value_floats", x->type.dims);
  if (!values) return Forward(values);
  if (*values == nullptr) return op.Unsupported("no imputed_value_floats for {}", DTypeName(x->type.dtype));
  const double replaced = op.Float("replaced_value_float", 0);
  Type truth = x->type;
  truth.dtype = kBool8;
  Value* is_replaced = std::isnan(replaced)
                           ? op.Call(names::kIsNan, {x}, {}, truth)
                           : op.Compare(names::kEqual, x, op.Scalar(x->type.dtype, replaced));
  op.Set(0, op.Call(names::kWhere, {is_replaced, op.Cast(*values, x->type.dtype), x}, {}, x->type));
  return {};
}

// X [N, features] times the coefficients of each of `rows` results, plus the intercepts. Where X does not say
// how many features it has, `told` results share the coefficients.
Result<Value*> LinearScores(Op& op, std::int64_t told, std::int64_t* rows) {
  const std::vector<double> coefficients = op.FloatList("coefficients"),
                            intercepts = op.FloatList("intercepts");
  const auto given = std::ssize(coefficients);
  std::int64_t features = 0;
  const Result<Value*> x = FeaturesOf(op, kFloat32, told > 0 ? given / told : 0, &features);
  if (!x) return Forward(x);
  *rows = given / features;
  if (*rows < 1 || given % features != 0)
    return op.Invalid("{} coefficients for {} features", given, features);
  if (!intercepts.empty() && std::ssize(intercepts) != *rows)
    return op.Invalid("{} intercepts for {} results", intercepts.size(), *rows);
  Value* weights = op.Transpose(op.Reshape(FloatsValue(op, coefficients), {*rows, features}), {1, 0});
  Result<Value*> product = MatMulOf(op, *x, weights);
  if (!product || intercepts.empty()) return product;
  return op.Apply(names::kAdd, *product, FloatsValue(op, intercepts));
}

Status LowerLinearRegressor(Op& op, const Operator& /*row*/) {
  std::int64_t rows = 0;
  Result<Value*> scores = LinearScores(op, op.Int("targets", 1), &rows);
  if (!scores) return Forward(scores);
  if (rows != op.Int("targets", 1))
    return op.Invalid("{} targets with coefficients of {}", op.Int("targets", 1), rows);
  return SetScores(op, 0, *scores);
}

Status LowerLinearClassifier(Op& op, const Operator& /*row*/) {
  const ClassLabels labels = LabelsOf(op, "classlabels_ints");
  std::int64_t rows = 0;
  // Two classes may have a row of coefficients each, or one for both: intercepts tell.
  const auto told = op.FloatList("intercepts").empty() ? labels.size() : op.FloatList("intercepts").size();
  Result<Value*> scores = LinearScores(op, static_cast<std::int64_t>(told), &rows);
  if (!scores) return Forward(scores);
  const bool binary = rows == 1 && labels.size() == 2;
  if (!binary && (rows < 2 || labels.size() != static_cast<std::size_t>(rows)))
    return op.Unsupported("{} labels with coefficients of {}", labels.size(), rows);
  // The score of the first of two classes without a transform is read in two ways.
  if (const std::string transform = op.String("post_transform", "NONE"); binary && transform != "LOGISTIC")
    return op.Unsupported("post_transform '{}' of two classes with one row of coefficients", transform);
  if (binary) scores = op.Concat({op.Unary(names::kNeg, *scores), *scores}, 1);
  SetLabels(op, 0, HighestClass(op, *scores), labels);
  return SetScores(op, 1, *scores);
}

Status LowerArrayFeatureExtractor(Op& op, const Operator& /*row*/) {
  Value *x = op.in(0), *indices = op.in(1);
  if (x->type.rank() < 1) return op.Invalid("X is a scalar");
  const DimExpr count = ProductOf(indices->type.dims);
  if (x->type.rank() == 1) x = op.Reshape(x, {1, x->type.dims[0]});
  Shape dims = x->type.dims;
  dims.back() = count;
  op.Set(0, op.Call(names::kGather, {x, op.Reshape(indices, {count})},
                    {{"axis", std::int64_t{x->type.rank() - 1}}}, TensorOf(x->type.dtype, std::move(dims))));
  return {};
}

Status LowerFeatureVectorizer(Op& op, const Operator& /*row*/) {
  const Ints sizes = op.IntList("inputdimensions");
  if (sizes.size() != static_cast<std::size_t>(op.inputs()))
    return op.Invalid("{} inputdimensions for {} inputs", sizes.size(), op.inputs());
  std::vector<Value*> parts;
  for (int i = 0; i < op.inputs(); ++i) {
    Value* x = op.Cast(op.in(i), kFloat32);
    if (x->type.rank() == 1) x = op.Reshape(x, {1, x->type.dims[0]});
    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
    if (x->type.rank() != 2 || x->type.dims[1].constant().value_or(size) != size)
      return op.Unsupported("input {} has shape {}, expected [N, {}]", i, ShapeText(x->type.dims), size);
    parts.push_back(x->type.dims[1].IsConstant() ? x : op.Reshape(x, {x->type.dims[0], DimExpr(size)}));
  }
  op.Set(0, op.Concat(parts, 1));
  return {};
}

}  // namespace

std::span<const Operator> MachineLearningOperators() {
  static constexpr Operator kOperators[] = {
      {"ArrayFeatureExtractor", 1, 0, 2, 2, "", LowerArrayFeatureExtractor, nullptr, kMovesStrings},
      {"Binarizer", 1, 0, 1, 1, "threshold", LowerBinarizer},
      {"FeatureVectorizer", 1, 0, 1, kAnyNumber, "inputdimensions", LowerFeatureVectorizer},
      {"Imputer", 1, 0, 1, 1,
       "~imputed_value_floats ~imputed_value_int64s ~replaced_value_float ~replaced_value_int64",
       LowerImputer},
      {"LinearClassifier", 1, 0, 1, 1,
       "classlabels_ints classlabels_strings coefficients intercepts ~multi_class post_transform",
       LowerLinearClassifier},
      {"LinearRegressor", 1, 0, 1, 1, "coefficients intercepts post_transform targets", LowerLinearRegressor},
      {"Normalizer", 1, 0, 1, 1, "norm", LowerNormalizer},
      {"Scaler", 1, 0, 1, 1, "offset scale", LowerScaler},
  };
  return kOperators;
}

}  // namespace rewire::compiler
