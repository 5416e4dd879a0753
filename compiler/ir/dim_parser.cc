// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/dim_parser.h"

#include <cstddef>
#include <utility>

#include "rewire/vm/prepare/expression_reader.h"

namespace rewire::compiler {
namespace {

struct DimRules {
  using Number = DimExpr;
  static constexpr const char* kSubject = "dimension";
  static constexpr const char* kNoMeaning = "is no dimension of an input and no integer attribute";
  using Reader = ExpressionReader<DimRules>;

  const DimOfName& of_name;

  std::optional<DimExpr> Find(const std::string& name, std::optional<std::int64_t> index) const {
    return of_name(name, index);
  }

  // Dimensions are integers, so a quotient says how it is rounded.
  static Result<DimExpr> Quotient(Reader& reader, const DimExpr& /*dividend*/) {
    return reader.Wrong("floor(a / b) or ceil(a / b) around a quotient");
  }

  static Result<DimExpr> Call(Reader& reader, const std::string& name, std::size_t begin) {
    if (name == "floor" || name == "ceil") return Rounded(reader, name == "ceil");
    using Binary = DimExpr (*)(const DimExpr&, const DimExpr&);
    const Binary function = name == "max"         ? &DimExpr::Max
                            : name == "min"       ? &DimExpr::Min
                            : name == "broadcast" ? &DimExpr::Broadcast
                                                  : nullptr;
    if (function == nullptr) return reader.WrongAt(begin, "floor, ceil, max, min or broadcast");
    Result<DimExpr> result = reader.Sum();
    while (result && reader.Take(',')) {
      const Result<DimExpr> operand = reader.Sum();
      if (!operand) return operand;
      result = function(*result, *operand);
    }
    if (!result) return result;
    if (Status closed = reader.Expect(')'); !closed) return Forward(closed);
    return result;
  }

  // a / b, or a * b / c, behind its parenthesis.
  static Result<DimExpr> Rounded(Reader& reader, bool up) {
    Result<DimExpr> dividend = reader.Product(true);
    if (!dividend) return dividend;
    if (Status divides = reader.Expect('/'); !divides) return Forward(divides);
    const Result<DimExpr> divisor = reader.Factor();
    if (!divisor) return divisor;
    if (Status closed = reader.Expect(')'); !closed) return Forward(closed);
    if (divisor->Is(0))
      return Fail(StatusCode::kInvalidArgument, "dimension '{}' divides by 0", reader.text());
    return up ? DimExpr::CeilDiv(*dividend, *divisor) : DimExpr::FloorDiv(*dividend, *divisor);
  }
};

}  // namespace

Result<DimExpr> ParseDimExpr(std::string_view text, const DimOfName& of_name) {
  const DimRules rules{of_name};
  return ExpressionReader<DimRules>(text, rules).Whole();
}

}  // namespace rewire::compiler
