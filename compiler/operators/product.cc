// SPDX-License-Identifier: Apache-2.0
// Matrix products and sums over products.
#include <algorithm>
#include <map>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/building_blocks.h"
#include "rewire/compiler/operators/given_attributes.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

Result<Shape> MatMulDims(const Op& op, ShapeSpan a, ShapeSpan b) {
  Shape dims;
  const auto broadcast = [&](ShapeSpan left, ShapeSpan right, Shape* batch) -> Status {
    Result<Shape> both = op.Broadcast(left, right);
    if (!both) return Forward(both);
    *batch = *std::move(both);
    return {};
  };
  if (Status fits = contract::MatMulSizes(a, b, broadcast, &dims, op.ShapeError()); !fits)
    return Forward(fits);
  return dims;
}

Status LowerMatMul(Op& op, const Operator& /*row*/) {
  const Result<Value*> product = MatMulOf(op, op.in(0), op.in(1));
  if (!product) return Forward(product);
  op.Set(0, *product);
  return {};
}

Status LowerMatMulInteger(Op& op, const Operator& row) {
  Result<Shape> dims = MatMulDims(op, op.in(0)->type.dims, op.in(1)->type.dims);
  if (!dims) return Forward(dims);
  op.Set(0, op.Call(row.kernel, op.Arguments(0, 3), {}, TensorOf(kInt32, *std::move(dims))));
  return {};
}

// a, its scale and zero, b, its scale and zero, the result's scale and zero.
Status LowerQLinearMatMul(Op& op, const Operator& row) {
  Result<Shape> dims = MatMulDims(op, op.in(0)->type.dims, op.in(3)->type.dims);
  if (!dims) return Forward(dims);
  Value* sums = op.Call(row.kernel, {op.in(0), op.in(3), op.in(2), op.in(5)}, {}, TensorOf(kInt32, *dims));
  const auto last = static_cast<std::int64_t>(dims->size()) - 1;
  op.Set(0, op.Call(names::kRequantize, {sums, op.in(1), op.in(4), op.in(6), op.in(7)}, {{"axis", last}},
                    TensorOf(op.in(7)->type.dtype, *std::move(dims))));
  return {};
}

Status LowerGemm(Op& op, const Operator& /*row*/) {
  const Result<Value*> product = GemmOf(op);
  if (!product) return Forward(product);
  op.Set(0, *product);
  return {};
}

// How many axes the equation's result has.
int EinsumRank(const Op& op, const std::string& equation) {
  const auto letters = [](const std::string& term) {
    return static_cast<int>(
        std::count_if(term.begin(), term.end(), [](char c) { return std::isalpha(c) != 0; }));
  };
  int ellipsis = 0;
  std::map<char, int> seen;
  const std::size_t arrow = equation.find("->");
  std::size_t start = 0;
  for (int i = 0; i < op.inputs(); ++i) {
    const std::size_t end = std::min(equation.find(',', start), arrow);
    const std::string term = equation.substr(start, end == std::string::npos ? end : end - start);
    for (const char c : term) ++seen[c];
    if (term.find("...") != std::string::npos)
      ellipsis = std::max(ellipsis, op.in(i)->type.rank() - letters(term));
    if (end == std::string::npos) break;
    start = end + 1;
  }
  if (arrow != std::string::npos) {
    const std::string result = equation.substr(arrow + 2);
    return letters(result) + (result.find("...") != std::string::npos ? ellipsis : 0);
  }
  int rank = ellipsis;
  for (const auto& [letter, count] : seen) rank += std::isalpha(letter) != 0 && count == 1 ? 1 : 0;
  return rank;
}

Status LowerEinsum(Op& op, const Operator& row) {
  const std::string equation = op.String("equation", "");
  std::vector<Value*> shapes;
  shapes.reserve(static_cast<std::size_t>(op.inputs()));
  for (int i = 0; i < op.inputs(); ++i) shapes.push_back(op.ShapeOf(op.in(i)));
  const Attributes attributes = {{"equation", equation}};
  op.Set(0, op.CallShaped(row.kernel, op.Arguments(0, op.inputs() - 1), attributes, op.in(0)->type.dtype,
                          Op::AllOpen(EinsumRank(op, equation)), {names::kShapeEinsum, shapes, attributes}));
  return {};
}

}  // namespace

Result<Value*> MatMulOf(Op& op, Value* a, Value* b) {
  Result<Shape> dims = MatMulDims(op, a->type.dims, b->type.dims);
  if (!dims) return Forward(dims);
  return op.Call(names::kMatMul, {a, b}, {}, TensorOf(a->type.dtype, *std::move(dims)));
}

Result<Value*> GemmOf(Op& op) {
  contract::GemmAttributes given;
  GivenAttributes read(op);
  given.Read(read);
  Shape dims;
  if (Status fits = given.ProductSizes(op.in(0)->type.dims, op.in(1)->type.dims, &dims, op.ShapeError());
      !fits)
    return Forward(fits);
  const Attributes attributes = {{"alpha", given.alpha},
                                 {"beta", given.beta},
                                 {"transA", std::int64_t{given.transpose_a}},
                                 {"transB", std::int64_t{given.transpose_b}}};
  return op.Call(names::kGemm, op.Arguments(0, 2), attributes,
                 TensorOf(op.in(0)->type.dtype, std::move(dims)));
}

std::span<const Operator> ProductOperators() {
  static constexpr Operator kOperators[] = {
      {"Einsum", 12, 0, 1, kAnyNumber, "equation", LowerEinsum, names::kEinsum},
      {"Gemm", 7, 0, 2, 3, "alpha beta transA transB", LowerGemm},
      {"Gemm", 1, 6, 3, 3, "alpha beta ~broadcast transA transB", LowerGemm},
      {"MatMul", 1, 0, 2, 2, "", LowerMatMul},
      {"MatMulInteger", 10, 0, 2, 4, "", LowerMatMulInteger, names::kMatMulInteger},
      {"QLinearMatMul", 10, 0, 8, 8, "", LowerQLinearMatMul, names::kMatMulInteger},
  };
  return kOperators;
}

}  // namespace rewire::compiler
