// SPDX-License-Identifier: Apache-2.0
// Support vector machines of ai.onnx.ml: kernel functions of rows and support vectors, and products by
// constants that are made of the coefficients.
#include <utility>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/building_blocks.h"
#include "rewire/compiler/operators/float_constant.h"
#include "rewire/compiler/operators/machine_learning/classes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/machine_learning.h"

namespace rewire::compiler {
namespace {

// A constant [rows, columns] of f32.
Value* MatrixOf(Op& op, const std::vector<double>& elements, std::int64_t columns) {
  Value* list = FloatsValue(op, elements);
  const auto count = static_cast<std::int64_t>(elements.size());
  return op.Reshape(list, {count / columns, columns});
}

// The kernel function of each row of x and each of the vectors [M, F]: [N, M].
Result<Value*> KernelOf(Op& op, Value* x, const std::vector<double>& vectors, std::int64_t features,
                        std::string kind) {
  const std::vector<double> parameters = op.FloatList("kernel_params");
  if (!parameters.empty() && parameters.size() != 3)
    return op.Invalid("kernel_params has {} numbers, expected gamma, coef0 and degree", parameters.size());
  const double gamma = parameters.empty() ? 0 : parameters[0],
               offset = parameters.empty() ? 0 : parameters[1],
               degree = parameters.empty() ? 0 : parameters[2];
  Value* rows = MatrixOf(op, vectors, features);
  const auto number = [&](double value) { return op.Scalar(kFloat32, value); };
  if (kind == "RBF") {
    Value* distance = op.Call(names::kSquaredDistance, {x, rows}, {},
                              TensorOf(kFloat32, {x->type.dims[0], rows->type.dims[0]}));
    return op.Unary(names::kExp, op.Apply(names::kMul, distance, number(-gamma)));
  }
  Result<Value*> product = MatMulOf(op, x, op.Transpose(rows, {1, 0}));
  if (!product || kind == "LINEAR") return product;
  Value* line = op.Apply(names::kAdd, op.Apply(names::kMul, *product, number(gamma)), number(offset));
  if (kind == "POLY") return op.Apply(names::kPow, line, number(degree));
  if (kind == "SIGMOID") return op.Unary(names::kTanh, line);
  return op.Invalid("kernel_type is '{}', expected LINEAR, POLY, RBF or SIGMOID", kind);
}

// The vectors and their number of features, which is X's.
Status CheckVectors(const Op& op, std::size_t numbers, std::int64_t vectors, std::int64_t features) {
  if (vectors >= 1 && vectors <= 1 << 24 && numbers == static_cast<std::size_t>(vectors * features))
    return {};
  return op.Invalid("{} vectors of {} features have {} numbers", vectors, features, numbers);
}

Status LowerSvmRegressor(Op& op, const Operator& /*row*/) {
  const std::vector<double> coefficients = op.FloatList("coefficients"), rho = op.FloatList("rho");
  std::vector<double> vectors = op.FloatList("support_vectors");
  const std::int64_t count = op.Int("n_supports", 0);
  const std::int64_t told = count > 0 ? std::ssize(vectors) / count : std::ssize(coefficients);
  std::int64_t features = 0;
  const Result<Value*> x = FeaturesOf(op, kFloat32, told, &features);
  if (!x) return Forward(x);
  if (features > 1 << 24) return op.Invalid("X has {} features", features);
  if (rho.empty()) return op.Invalid("rho is missing");
  if (op.String("post_transform", "NONE") != "NONE")
    return op.Unsupported("post_transform '{}'", op.String("post_transform", "NONE"));
  std::string kind = op.String("kernel_type", "LINEAR");
  Result<Value*> score = *x;
  if (count > 0) {
    if (Status checked = CheckVectors(op, vectors.size(), count, features); !checked) return checked;
    if (coefficients.size() != static_cast<std::size_t>(count))
      return op.Invalid("{} coefficients for {} vectors", coefficients.size(), count);
    score = KernelOf(op, *x, vectors, features, kind);
    if (!score) return Forward(score);
  } else {
    (void)op.FloatList("kernel_params");
    if (Status checked = CheckVectors(op, coefficients.size(), 1, features); !checked) return checked;
  }
  score = MatMulOf(op, *score, MatrixOf(op, coefficients, 1));
  if (!score) return Forward(score);
  Value* y = op.Apply(names::kAdd, *score, op.Scalar(kFloat32, rho[0]));
  if (op.Int("one_class", 0) != 0) {
    Value* inside = op.Compare(names::kGreater, y, op.Scalar(kFloat32, 0));
    y = op.Call(names::kWhere, {inside, op.Scalar(kFloat32, 1), op.Scalar(kFloat32, -1)}, {}, y->type);
  }
  op.Set(0, y);
  return {};
}

// The classes between which each pair of columns decides: (0, 1), (0, 2), .. (1, 2), ..
struct ClassPairs {
  explicit ClassPairs(std::int64_t classes) : classes(classes) {
    for (std::int64_t i = 0; i < classes; ++i) {
      for (std::int64_t j = i + 1; j < classes; ++j) list.emplace_back(i, j);
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(list.size()); }

  std::int64_t classes;
  std::vector<std::pair<std::int64_t, std::int64_t>> list;
};

// The coefficient of each vector for each pair, [vectors, pairs]. The model has those of class i against the
// others in the row of the other, without the diagonal.
std::vector<double> PairFactors(const ClassPairs& pairs, const std::vector<double>& coefficients,
                                const Ints& per_class) {
  Ints starts = {0};
  for (const std::int64_t count : per_class) starts.push_back(starts.back() + count);
  const std::int64_t vectors = starts.back();
  std::vector<double> factors(static_cast<std::size_t>(vectors * pairs.count()));
  for (std::size_t pair = 0; pair < pairs.list.size(); ++pair) {
    const auto [i, j] = pairs.list[pair];
    const std::pair<std::int64_t, std::int64_t> sides[] = {{i, j - 1}, {j, i}};  // of a class, and the row
    for (const auto& [own, row] : sides) {
      for (std::int64_t v = starts[static_cast<std::size_t>(own)];
           v < starts[static_cast<std::size_t>(own + 1)]; ++v) {
        factors[static_cast<std::size_t>(v * pairs.count()) + pair] =
            coefficients[static_cast<std::size_t>(row * vectors + v)];
      }
    }
  }
  return factors;
}

// The class with most pairs that decide for it, the first of several.
Result<Value*> MostVotes(Op& op, Value* scores, const ClassPairs& pairs) {
  Value* first = op.Cast(op.Compare(names::kGreater, scores, op.Scalar(kFloat32, 0)), kFloat32);
  Value* second = op.Apply(names::kSub, op.Scalar(kFloat32, 1), first);
  std::vector<double> of_first(static_cast<std::size_t>(pairs.count() * pairs.classes)), of_second = of_first;
  for (std::int64_t pair = 0; pair < pairs.count(); ++pair) {
    const auto [i, j] = pairs.list[static_cast<std::size_t>(pair)];
    of_first[static_cast<std::size_t>(pair * pairs.classes + i)] = 1;
    of_second[static_cast<std::size_t>(pair * pairs.classes + j)] = 1;
  }
  Result<Value*> a = MatMulOf(op, first, MatrixOf(op, of_first, pairs.classes));
  if (!a) return a;
  Result<Value*> b = MatMulOf(op, second, MatrixOf(op, of_second, pairs.classes));
  if (!b) return b;
  return HighestClass(op, op.Apply(names::kAdd, *a, *b));
}

// The probabilities of classes from the scores of pairs: first of the pairs, by a logistic function of each.
Value* ClassProbabilities(Op& op, Value* scores, const ClassPairs& pairs, const std::vector<double>& a,
                          const std::vector<double>& b) {
  Value* line = op.Apply(names::kAdd, op.Apply(names::kMul, scores, FloatsValue(op, a)), FloatsValue(op, b));
  Value* of_first = op.Unary(names::kSigmoid, op.Unary(names::kNeg, line));
  Value* least = op.Scalar(kFloat32, 1e-7);
  Value* most = op.Scalar(kFloat32, 1 - 1e-7);
  of_first = op.Apply(names::kMin, op.Apply(names::kMax, of_first, least), most);
  return op.Call(names::kPairwiseCoupling, {of_first}, {},
                 TensorOf(kFloat32, {scores->type.dims[0], DimExpr(pairs.classes)}));
}

// A row of coefficients for each class, without support vectors.
Status LowerLinearMachine(Op& op, Value* x, std::int64_t features, const ClassLabels& labels) {
  const std::vector<double> coefficients = op.FloatList("coefficients"), rho = op.FloatList("rho");
  for (const char* unused : {"kernel_params", "support_vectors"}) (void)op.FloatList(unused);
  (void)op.String("kernel_type", "LINEAR");
  const auto classes = static_cast<std::int64_t>(labels.size());
  if (Status checked = CheckVectors(op, coefficients.size(), classes, features); !checked) return checked;
  if (classes == 2) return op.Unsupported("two classes without support vectors");
  if (rho.empty()) return op.Invalid("rho is missing");
  if (!op.FloatList("prob_a").empty() || !op.FloatList("prob_b").empty())
    return op.Unsupported("probabilities without support vectors");
  const Result<Value*> product = MatMulOf(op, x, op.Transpose(MatrixOf(op, coefficients, features), {1, 0}));
  if (!product) return Forward(product);
  Value* scores = op.Apply(names::kAdd, *product, op.Scalar(kFloat32, rho[0]));
  SetLabels(op, 0, HighestClass(op, scores), labels);
  return SetScores(op, 1, scores);
}

Status LowerSvmClassifier(Op& op, const Operator& /*row*/) {
  const ClassLabels labels = LabelsOf(op, "classlabels_ints");
  const Ints per_class = op.IntList("vectors_per_class");
  const std::vector<double> coefficients = op.FloatList("coefficients"), rho = op.FloatList("rho"),
                            a = op.FloatList("prob_a"), b = op.FloatList("prob_b"),
                            vectors = op.FloatList("support_vectors");
  std::int64_t count = 0;
  for (const std::int64_t each : per_class) {
    if (each < 0 || each > 1 << 24) return op.Invalid("vectors_per_class has {}", each);
    count += each;
  }
  const std::int64_t rows = per_class.empty() ? std::ssize(labels) : count;
  const std::int64_t numbers = per_class.empty() ? std::ssize(coefficients) : std::ssize(vectors);
  std::int64_t features = 0;
  const Result<Value*> x = FeaturesOf(op, kFloat32, rows > 0 ? numbers / rows : 0, &features);
  if (!x) return Forward(x);
  if (features > 1 << 24) return op.Invalid("X has {} features", features);
  if (per_class.empty()) return LowerLinearMachine(op, *x, features, labels);
  if (labels.size() < 2 || labels.size() > 4096 || per_class.size() != labels.size())
    return op.Invalid("{} labels with vectors_per_class of {}", labels.size(), per_class.size());
  if (Status checked = CheckVectors(op, vectors.size(), count, features); !checked) return checked;
  const ClassPairs pairs(static_cast<std::int64_t>(labels.size()));
  const auto pair_count = pairs.list.size();
  if (coefficients.size() != static_cast<std::size_t>(count) * (labels.size() - 1))
    return op.Invalid("{} coefficients for {} vectors of {} classes", coefficients.size(), count,
                      labels.size());
  if (rho.size() != pair_count || a.size() != b.size() || (!a.empty() && a.size() != pair_count))
    return op.Invalid("rho, prob_a and prob_b have {}, {} and {} numbers for {} pairs of classes", rho.size(),
                      a.size(), b.size(), pair_count);
  const Result<Value*> kernel = KernelOf(op, *x, vectors, features, op.String("kernel_type", "LINEAR"));
  if (!kernel) return Forward(kernel);
  const Result<Value*> sums =
      MatMulOf(op, *kernel, MatrixOf(op, PairFactors(pairs, coefficients, per_class), pairs.count()));
  if (!sums) return Forward(sums);
  Value* scores = op.Apply(names::kAdd, *sums, FloatsValue(op, rho));
  const Result<Value*> winner = MostVotes(op, scores, pairs);
  if (!winner) return Forward(winner);
  SetLabels(op, 0, *winner, labels);
  if (!a.empty()) {
    scores = ClassProbabilities(op, scores, pairs, a, b);
  } else if (labels.size() == 2) {
    // The meaning of another transform of one score is not written down.
    if (const std::string transform = op.String("post_transform", "NONE"); transform != "NONE")
      return op.Unsupported("post_transform '{}' of two classes", transform);
    scores = op.Apply(names::kMul, scores, FloatsValue(op, {-1, 1}));
  }
  return SetScores(op, 1, scores);
}

}  // namespace

std::span<const Operator> SupportVectorOperators() {
  static constexpr Operator kOperators[] = {
      {"SVMClassifier", 1, 0, 1, 1,
       "classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform prob_a "
       "prob_b rho support_vectors vectors_per_class",
       LowerSvmClassifier},
      {"SVMRegressor", 1, 0, 1, 1,
       "coefficients kernel_params kernel_type n_supports one_class post_transform rho support_vectors",
       LowerSvmRegressor},
  };
  return kOperators;
}

}  // namespace rewire::compiler
