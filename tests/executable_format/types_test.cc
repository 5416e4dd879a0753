// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/types.h"

#include <catch2/catch.hpp>

namespace rewire {
namespace {

const std::vector<std::string> kSymbols = {"N", "batch"};

TEST_CASE("types have a text") {
  const Type scalar = TensorType(kInt64, {});
  const Type matrix = TensorType(kFloat32, {SymbolDim(1), 4, kUnknownDim}, 2);
  CHECK(TypeText(scalar, kSymbols) == "i64[]");
  CHECK(TypeText(matrix, kSymbols) == "f32[batch, 4, ?]@2");
  CHECK(TypeText(UnrankedTensorType(), kSymbols) == "?[*]");
  CHECK(TypeText(UnrankedTensorType(kBool8, kAnyDevice), kSymbols) == "bool[*]@*");
  CHECK(TypeText(AdtType(0, {}), kSymbols) == "()");
  CHECK(TypeText(AdtType(3, {AdtType(0, {}), scalar, AdtType(1, {AdtType(0, {scalar})})}), kSymbols) ==
        "adt 3 ((), i64[], adt 1 ((i64[])))");
  CHECK(TypeText(AdtType(0, {SimpleType(TypeKind::kValue), SimpleType(TypeKind::kClosure),
                             SimpleType(TypeKind::kStorage), SimpleType(TypeKind::kInteger)}),
                 kSymbols) == "(value, closure, storage, integer)");
  CHECK(TypeText(TensorType(kFloat32, {SymbolDim(7)}), kSymbols) == "f32[symbol7]");
}

TEST_CASE("leaves and subtrees follow pre-order") {
  const Type leaf = TensorType(kFloat32, {1});
  const Type type = AdtType(0, {leaf, AdtType(0, {leaf, AdtType(0, {})}), leaf});
  CHECK(Leaves(type) == std::vector<std::uint32_t>{1, 3, 5});
  CHECK(SubtreeEnd(type, 0) == 6);
  CHECK(SubtreeEnd(type, 2) == 5);
  CHECK(SubtreeEnd(type, 4) == 5);
}

}  // namespace
}  // namespace rewire
