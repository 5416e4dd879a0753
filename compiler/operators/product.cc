// SPDX-License-Identifier: Apache-2.0
// Matrix products and sums over products.
#include <cmath>
#include <utility>
#include <vector>

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

Status LowerEinsum(Op& op, const Operator& row) {
  const std::string given = op.String("equation", "");
  contract::EinsumEquation equation;
  if (Status fits = equation.Parse(given, op.ShapeError()); !fits) return fits;
  if (static_cast<int>(equation.operands.size()) != op.inputs())
    return op.Invalid("equation is '{}' for {} operands", given, op.inputs());
  std::vector<Value*> shapes;
  std::vector<ShapeSpan> sizes;
  for (int i = 0; i < op.inputs(); ++i) {
    shapes.push_back(op.ShapeOf(op.in(i)));
    sizes.emplace_back(op.in(i)->type.dims);
  }
  std::size_t ellipsis = 0;
  if (Status fits = equation.FindEllipsis(sizes, &ellipsis, op.ShapeError()); !fits) return fits;
  const Op::OpenShape known(equation.ResultRank(ellipsis));
  const Attributes attributes = {{"equation", given}};
  op.Set(0, op.CallShaped(row.kernel, op.Arguments(0, op.inputs() - 1), attributes, op.in(0)->type.dtype,
                          known, {names::kShapeEinsum, shapes, attributes}));
  return {};
}

}  // namespace

Value* TakeFactor(Op& op, Value* x, double* factor) {
  constexpr double kMost = 1 << 10;  // weights near the ends of what floats hold are not scaled out of it
  int exponent = 0;
  const double size = std::fabs(*factor);
  const bool is_power = size >= 1 / kMost && size <= kMost && std::frexp(size, &exponent) == 0.5;
  if (!is_power || *factor == 1 || x == nullptr || x->at_load || !(x->type.dtype == kFloat32)) return x;
  const HostTensor* given = ElementsOf(x);
  if (given == nullptr) return x;
  const auto* from = reinterpret_cast<const float*>(given->bytes.view.data());
  std::vector<float> floats(from, from + given->bytes.view.size() / sizeof(float));
  for (float& element : floats) element *= static_cast<float>(*factor);
  HostTensor scaled;
  scaled.dtype = kFloat32;
  scaled.shape = given->shape;
  scaled.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(floats.data()), floats.size() * sizeof(float)});
  *factor = 1;
  return op.Constant(std::move(scaled));
}

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
  std::vector<Value*> inputs = op.Arguments(0, 2);
  inputs[1] = TakeFactor(op, inputs[1], &given.alpha);
  if (inputs.size() > 2)
    inputs[2] = TakeFactor(op, inputs[2], &given.beta);
  else
    given.beta = 1;
  const Attributes attributes = {{"alpha", given.alpha},
                                 {"beta", given.beta},
                                 {"transA", std::int64_t{given.transpose_a}},
                                 {"transB", std::int64_t{given.transpose_b}}};
  return op.Call(names::kGemm, std::move(inputs), attributes,
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
