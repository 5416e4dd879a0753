// SPDX-License-Identifier: Apache-2.0
//
// DimExpr: a dimension that may be unknown until a model runs. It is an integer polynomial over named
// symbols, and over quotients, maxima and minima of such polynomials, and what they broadcast to.
//
// Expressions are kept in a normal form, so that equal sums of products compare equal: 2 * N + N == 3 * N.
// Arithmetic saturates at the ends of int64. A saturated size is refused where something would be allocated
// with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewire/base/interval.h"
#include "rewire/vm/kernel/size_rules.h"

namespace rewire::compiler {

class DimExpr {
 public:
  DimExpr() : DimExpr(0) {}
  DimExpr(std::int64_t value);  // NOLINT: a number is a dimension
  static DimExpr Symbol(const std::string& name);

  // The value, if the expression has no symbols.
  std::optional<std::int64_t> constant() const;
  bool IsConstant() const { return constant().has_value(); }
  bool Is(std::int64_t value) const { return constant() == value; }
  // The symbol's name, if the expression is a single symbol.
  std::optional<std::string> symbol() const;

  DimExpr operator+(const DimExpr& other) const;
  DimExpr operator-(const DimExpr& other) const { return *this + other * DimExpr(-1); }
  DimExpr operator*(const DimExpr& other) const;
  bool operator==(const DimExpr& other) const { return text_ == other.text_; }

  // Rounded towards minus infinity, and towards plus infinity. A constant divisor of 0 gives 0, because
  // callers have checked it.
  static DimExpr FloorDiv(const DimExpr& a, const DimExpr& b);
  static DimExpr CeilDiv(const DimExpr& a, const DimExpr& b);
  // a / b, if b divides a without a remainder whatever the symbols are, and the quotient is a single product.
  static std::optional<DimExpr> ExactQuotient(const DimExpr& a, const DimExpr& b);
  // Symbols are dimensions, so they are not negative: the larger of N + 1 and N is N + 1.
  static DimExpr Max(const DimExpr& a, const DimExpr& b);
  static DimExpr Min(const DimExpr& a, const DimExpr& b);
  // BroadcastSize: the size of an axis of `a` with one of `b`. Sizes that differ and are not 1 fail in the
  // run, so N and 3 give 3. N and M give neither: the larger is not the result of 1 and 0.
  static DimExpr Broadcast(const DimExpr& a, const DimExpr& b);

  // A size that is at most a number in all runs that do not fail.
  struct AtMost;
  // Returns what follows if `a` and `b` broadcast: e at most 512, from e and min(512, e).
  static std::optional<AtMost> ImpliedByBroadcast(const DimExpr& a, const DimExpr& b);
  // True if `window` is `size` in all runs that stay within tables. Rows P to P + N of a table of 512 rows
  // are N: min(512, P + N) - min(512, P).
  static bool IsWindow(const DimExpr& window, const DimExpr& size);
  // The same without the minima that a fact decides.
  DimExpr Given(const AtMost& fact) const;

  // The interval of the value if each symbol lies in the interval that `of_symbol` returns.
  using SymbolInterval = std::function<Interval(const std::string& name)>;
  Interval Bounds(const SymbolInterval& of_symbol) const;
  // The interval of the value for all values of the symbols.
  Interval Bounds() const;

  // "3*N + floor((M - 1) / 2)"; equal for equal expressions.
  const std::string& text() const { return text_; }
  void CollectSymbols(std::set<std::string>* names) const;
  // The expression with other expressions in place of those symbols for which `of_symbol` has one.
  using Replacement = std::function<std::optional<DimExpr>(const std::string& name)>;
  DimExpr Replaced(const Replacement& of_symbol) const;

  // The expression as a postfix program; see rewire.shape.eval in docs/kernels.md. For a symbol, `source`
  // gives the input of that kernel and the axis where its value can be read.
  struct Source {
    std::int64_t input = 0;
    std::int64_t axis = 0;
  };
  template <typename SourceOf>
  void AppendProgram(const SourceOf& source_of, std::vector<std::int64_t>* program) const;

 private:
  enum class AtomKind : std::uint8_t { kSymbol, kFloorDiv, kMax, kMin, kBroadcastSize };
  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  // coefficient * product of factors. Factors are sorted by their texts, and so are terms.
  struct Term {
    std::int64_t coefficient = 0;
    std::vector<AtomPtr> factors;
    std::string key;  // the factors' texts
  };

  static DimExpr OfAtom(AtomKind kind, const std::string& name, std::vector<DimExpr> operands);
  static DimExpr OfTerms(std::vector<Term> terms);
  static std::optional<DimExpr> DividedBy(const DimExpr& a, const Term& by);
  // The expression with other expressions in place of those atoms for which `of_atom` has one.
  using AtomReplacement = std::function<std::optional<DimExpr>(const Atom& atom)>;
  DimExpr Rebuilt(const AtomReplacement& of_atom) const;
  static DimExpr RebuiltAtom(const Atom& atom, const AtomReplacement& of_atom);
  // The size to which the two broadcast, if it is one of them in all runs that do not fail.
  static std::optional<DimExpr> BroadcastToOne(const DimExpr& a, const DimExpr& b);
  // The atom, if the expression is a single atom.
  const Atom* atom() const;
  // True if a >= b can be proved. Looks into at most `depth` maxima and minima at once.
  static bool IsAtLeast(const DimExpr& a, const DimExpr& b, int depth);

  std::vector<Term> terms_;
  std::string text_;
};

struct DimExpr::Atom {
  AtomKind kind;
  std::string text;               // a symbol's name
  std::vector<DimExpr> operands;  // two, or more of kBroadcastSize
  SizeCodes::Code code() const;   // unless it is a symbol
};

struct DimExpr::AtMost {
  DimExpr size;
  std::int64_t most = 0;
};

using Shape = std::vector<DimExpr>;

// "[N, 4, 2*M]"
std::string ShapeText(const Shape& shape);
DimExpr ProductOf(const Shape& shape);
// The dimensions as integers, if all are known.
std::optional<std::vector<std::int64_t>> ConstantDims(const Shape& shape);
Shape ShapeOfInts(const std::vector<std::int64_t>& dims);

template <typename SourceOf>
void DimExpr::AppendProgram(const SourceOf& source_of, std::vector<std::int64_t>* program) const {
  if (terms_.empty()) program->insert(program->end(), {SizeCodes::kPush, 0});
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    bool more = term.coefficient != 1 || term.factors.empty();  // than one factor
    if (more) program->insert(program->end(), {SizeCodes::kPush, term.coefficient});
    for (const AtomPtr& factor : term.factors) {
      if (factor->kind == AtomKind::kSymbol) {
        const Source source = source_of(factor->text);
        program->insert(program->end(), {SizeCodes::kDim, source.input, source.axis});
      } else {
        factor->operands[0].AppendProgram(source_of, program);
        for (std::size_t k = 1; k < factor->operands.size(); ++k) {
          factor->operands[k].AppendProgram(source_of, program);
          program->push_back(factor->code());
        }
      }
      if (more) program->push_back(SizeCodes::kMultiply);
      more = true;
    }
    if (i > 0) program->push_back(SizeCodes::kAdd);
  }
}

}  // namespace rewire::compiler
