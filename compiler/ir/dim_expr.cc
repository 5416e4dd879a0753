// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/dim_expr.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "rewire/compiler/ir/dim_length.h"

namespace rewire::compiler {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
// Every level may ask for two answers at the next.
constexpr int kComparedDepth = 6;
constexpr int kComparedQuestions = 256;
// Products of terms that are made before equal ones are added up.
constexpr std::size_t kMostProducts = 1024;

std::int64_t Add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? kLargest : kSmallest;
}

std::int64_t Multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? kLargest : kSmallest;
}

std::int64_t FloorDivide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return Multiply(a, -1);
  const std::int64_t quotient = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

DimExpr TooLong() { return DimExpr::Symbol(kTooLong); }

}  // namespace

DimExpr::DimExpr(std::int64_t value) : text_(std::to_string(value)) {
  if (value != 0) terms_.push_back({value, {}, ""});
}

DimExpr DimExpr::OfAtom(AtomKind kind, const std::string& name, std::vector<DimExpr> operands) {
  std::size_t length = name.size();
  for (const DimExpr& operand : operands) {
    if (IsTooLong(operand)) return TooLong();
    length += operand.text_.size();
  }
  if (length > kMostDimText) return TooLong();
  std::string text = name;
  if (kind == AtomKind::kFloorDiv) text = "floor((" + operands[0].text_ + ") / (" + operands[1].text_ + "))";
  const char* function = kind == AtomKind::kMax             ? "max("
                         : kind == AtomKind::kMin           ? "min("
                         : kind == AtomKind::kBroadcastSize ? "broadcast("
                                                            : nullptr;
  for (std::size_t i = 0; function != nullptr && i < operands.size(); ++i) {
    text += (i == 0 ? function : ", ") + operands[i].text_;
    if (i + 1 == operands.size()) text += ")";
  }
  auto atom = std::make_shared<const Atom>(Atom{kind, text, std::move(operands)});
  return OfTerms({Term{1, {std::move(atom)}, text}});
}

DimExpr DimExpr::OfTerms(std::vector<Term> terms) {
  std::map<std::string, Term> sums;
  for (Term& term : terms) {
    auto [place, added] = sums.try_emplace(term.key, term);
    if (!added) place->second.coefficient = Add(place->second.coefficient, term.coefficient);
  }
  DimExpr sum;
  sum.text_.clear();
  // The constant term has the empty key and comes first; it reads better at the end.
  std::string last;
  for (auto& [key, term] : sums) {
    if (term.coefficient == 0) continue;
    std::string text = key;
    if (key.empty()) {
      text = std::to_string(term.coefficient);
    } else if (term.coefficient != 1) {
      text = std::to_string(term.coefficient) + "*" + key;
    }
    if (key.empty()) {
      last = text;
    } else {
      sum.text_ += (sum.text_.empty() ? "" : " + ") + text;
    }
    sum.terms_.push_back(std::move(term));
  }
  if (!last.empty()) sum.text_ += (sum.text_.empty() ? "" : " + ") + last;
  if (sum.text_.empty()) sum.text_ = "0";
  return sum.text_.size() > kMostDimText ? TooLong() : sum;
}

DimExpr DimExpr::Symbol(const std::string& name) { return OfAtom(AtomKind::kSymbol, name, {}); }

std::optional<std::int64_t> DimExpr::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_[0].factors.empty()) return terms_[0].coefficient;
  return std::nullopt;
}

SizeCodes::Code DimExpr::Atom::code() const {
  switch (kind) {
    case AtomKind::kMax:
      return SizeCodes::kMaximum;
    case AtomKind::kMin:
      return SizeCodes::kMinimum;
    case AtomKind::kBroadcastSize:
      return SizeCodes::kBroadcast;
    case AtomKind::kSymbol:
    case AtomKind::kFloorDiv:
      break;
  }
  return SizeCodes::kFloorDivide;
}

const DimExpr::Atom* DimExpr::atom() const {
  const bool is_atom = terms_.size() == 1 && terms_[0].coefficient == 1 && terms_[0].factors.size() == 1;
  return is_atom ? terms_[0].factors[0].get() : nullptr;
}

std::optional<std::string> DimExpr::symbol() const {
  const Atom* only = atom();
  if (only == nullptr || only->kind != AtomKind::kSymbol) return std::nullopt;
  return only->text;
}

DimExpr DimExpr::operator+(const DimExpr& other) const {
  if (IsTooLong(*this) || IsTooLong(other)) return TooLong();
  std::vector<Term> terms = terms_;
  terms.insert(terms.end(), other.terms_.begin(), other.terms_.end());
  return OfTerms(std::move(terms));
}

DimExpr DimExpr::operator*(const DimExpr& other) const {
  if (IsTooLong(*this) || IsTooLong(other) || terms_.size() * other.terms_.size() > kMostProducts)
    return TooLong();
  std::vector<Term> terms;
  for (const Term& a : terms_) {
    for (const Term& b : other.terms_) {
      Term product{Multiply(a.coefficient, b.coefficient), a.factors, ""};
      product.factors.insert(product.factors.end(), b.factors.begin(), b.factors.end());
      std::sort(product.factors.begin(), product.factors.end(),
                [](const AtomPtr& x, const AtomPtr& y) { return x->text < y->text; });
      for (const AtomPtr& factor : product.factors)
        product.key += (product.key.empty() ? "" : "*") + factor->text;
      terms.push_back(std::move(product));
    }
  }
  return OfTerms(std::move(terms));
}

// (6*N*M + 2*N) / (2*N): the divisor's factors are taken out of every term.
std::optional<DimExpr> DimExpr::DividedBy(const DimExpr& a, const Term& by) {
  std::vector<Term> quotient;
  for (const Term& term : a.terms_) {
    Term part{0, term.factors, ""};
    if (by.coefficient == 0 || term.coefficient % by.coefficient != 0) return std::nullopt;
    for (const AtomPtr& factor : by.factors) {
      const auto found = std::find_if(part.factors.begin(), part.factors.end(),
                                      [&](const AtomPtr& f) { return f->text == factor->text; });
      if (found == part.factors.end()) return std::nullopt;
      part.factors.erase(found);
    }
    part.coefficient = term.coefficient / by.coefficient;
    for (const AtomPtr& factor : part.factors) part.key += (part.key.empty() ? "" : "*") + factor->text;
    quotient.push_back(std::move(part));
  }
  return OfTerms(std::move(quotient));
}

std::optional<DimExpr> DimExpr::ExactQuotient(const DimExpr& a, const DimExpr& b) {
  if (b.terms_.empty() || IsTooLong(a) || IsTooLong(b)) return std::nullopt;
  if (b.terms_.size() == 1) return DividedBy(a, b.terms_[0]);
  // (4*N*M + 4*N) / (N*M + N): some term of one is the quotient times the first term of the other.
  for (const Term& term : a.terms_) {
    std::optional<DimExpr> quotient = DividedBy(OfTerms({term}), b.terms_[0]);
    if (quotient && *quotient * b == a) return quotient;
  }
  return std::nullopt;
}

DimExpr DimExpr::FloorDiv(const DimExpr& a, const DimExpr& b) {
  if (IsTooLong(a) || IsTooLong(b)) return TooLong();
  const std::optional<std::int64_t> divisor = b.constant();
  if (a.IsConstant() && divisor) return FloorDivide(*a.constant(), *divisor);
  if (divisor == 1) return a;
  if (a == b) return 1;
  if (divisor && *divisor != 0) {
    // Terms that divide evenly leave the quotient: (4*N + 3) / 2 is 2*N + 3/2.
    std::vector<Term> whole, rest;
    for (const Term& term : a.terms_) {
      Term part = term;
      if (term.coefficient % *divisor == 0) {
        part.coefficient /= *divisor;
        whole.push_back(std::move(part));
      } else {
        rest.push_back(std::move(part));
      }
    }
    if (!whole.empty()) return OfTerms(std::move(whole)) + FloorDiv(OfTerms(std::move(rest)), b);
  } else if (const std::optional<DimExpr> quotient = ExactQuotient(a, b)) {
    return *quotient;
  }
  return OfAtom(AtomKind::kFloorDiv, "", {a, b});
}

DimExpr DimExpr::CeilDiv(const DimExpr& a, const DimExpr& b) {
  return DimExpr(-1) * FloorDiv(DimExpr(-1) * a, b);
}

Interval DimExpr::Bounds(const SymbolInterval& of_symbol) const {
  Interval sum = Interval::Of(0);
  for (const Term& term : terms_) {
    Interval product = Interval::Of(term.coefficient);
    for (const AtomPtr& factor : term.factors) {
      if (factor->kind == AtomKind::kSymbol) {
        product = rewire::ProductOf(product, of_symbol(factor->text));
        continue;
      }
      Interval value = factor->operands[0].Bounds(of_symbol);
      for (std::size_t i = 1; i < factor->operands.size(); ++i) {
        const Interval next = factor->operands[i].Bounds(of_symbol);
        value = factor->kind == AtomKind::kFloorDiv ? FloorQuotientOf(value, next)
                : factor->kind == AtomKind::kMax    ? LargerOf(value, next)
                : factor->kind == AtomKind::kMin    ? SmallerOf(value, next)
                                                    : EitherOf(value, next);
      }
      product = rewire::ProductOf(product, value);
    }
    sum = SumOf(sum, product);
  }
  return sum;
}

Interval DimExpr::Bounds() const {
  return Bounds([](const std::string& /*name*/) { return Interval::FromZero(); });
}

bool DimExpr::IsAtLeast(const DimExpr& a, const DimExpr& b, int depth) {
  int questions = kComparedQuestions;
  const auto is_positive = [&questions](const auto& self, const DimExpr& sum, int levels) -> bool {
    if (--questions < 0 || IsTooLong(sum)) return false;
    if (sum.Bounds().least >= 0) return true;
    if (levels == 0) return false;
    // A maximum or minimum is one of its operands. Where the sum is the smaller of the two that it can be,
    // neither may be negative. Then all is known that can be said about such a term, so it comes first. Which
    // operand a broadcast size is, is not known, so none may be negative.
    for (const bool every : {true, false}) {
      for (const Term& term : sum.terms_) {
        const AtomKind kind = term.factors.size() == 1 ? term.factors[0]->kind : AtomKind::kSymbol;
        if (kind == AtomKind::kSymbol || kind == AtomKind::kFloorDiv) continue;
        const bool needs_every =
            kind == AtomKind::kBroadcastSize || (kind == AtomKind::kMin) == (term.coefficient > 0);
        if (needs_every != every) continue;
        const DimExpr rest = sum - OfTerms({term});
        const auto with = [&](const DimExpr& operand) {
          return self(self, rest + operand * DimExpr(term.coefficient), levels - 1);
        };
        const std::vector<DimExpr>& operands = term.factors[0]->operands;
        if (every) return std::all_of(operands.begin(), operands.end(), with);
        if (std::any_of(operands.begin(), operands.end(), with)) return true;
      }
    }
    return false;
  };
  return is_positive(is_positive, a - b, depth);
}

DimExpr DimExpr::Max(const DimExpr& a, const DimExpr& b) {
  if (IsTooLong(a) || IsTooLong(b)) return TooLong();
  if (IsAtLeast(a, b, kComparedDepth)) return a;
  if (IsAtLeast(b, a, kComparedDepth)) return b;
  return a.text_ < b.text_ ? OfAtom(AtomKind::kMax, "", {a, b}) : OfAtom(AtomKind::kMax, "", {b, a});
}

DimExpr DimExpr::Min(const DimExpr& a, const DimExpr& b) {
  if (IsTooLong(a) || IsTooLong(b)) return TooLong();
  if (IsAtLeast(b, a, kComparedDepth)) return a;
  if (IsAtLeast(a, b, kComparedDepth)) return b;
  return a.text_ < b.text_ ? OfAtom(AtomKind::kMin, "", {a, b}) : OfAtom(AtomKind::kMin, "", {b, a});
}

std::optional<DimExpr> DimExpr::BroadcastToOne(const DimExpr& a, const DimExpr& b) {
  if (a == b || b.Is(1)) return a;
  if (a.Is(1)) return b;
  for (const auto& [size, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    // The other is the same or 1.
    if (size->IsConstant() || size->Bounds().least > 1) return *size;
    // The larger is not the result if the smaller is 0 of 1 and 0.
    if (IsAtLeast(*size, *other, kComparedDepth) && IsAtLeast(*other, Min(*size, 1), kComparedDepth))
      return *size;
  }
  return std::nullopt;
}

DimExpr DimExpr::Broadcast(const DimExpr& a, const DimExpr& b) {
  if (IsTooLong(a) || IsTooLong(b)) return TooLong();
  std::vector<DimExpr> sizes, kept;
  for (const DimExpr* side : {&a, &b}) {
    const Atom* only = side->atom();
    if (only != nullptr && only->kind == AtomKind::kBroadcastSize)
      sizes.insert(sizes.end(), only->operands.begin(), only->operands.end());
    else
      sizes.push_back(*side);
  }
  for (DimExpr& size : sizes) {
    for (auto other = kept.begin(); other != kept.end();) {
      std::optional<DimExpr> one = BroadcastToOne(*other, size);
      if (one) size = *std::move(one);
      other = one ? kept.erase(other) : std::next(other);
    }
    kept.push_back(std::move(size));
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), [](const DimExpr& x, const DimExpr& y) { return x.text_ < y.text_; });
  return OfAtom(AtomKind::kBroadcastSize, "", std::move(kept));
}

std::optional<DimExpr::AtMost> DimExpr::ImpliedByBroadcast(const DimExpr& a, const DimExpr& b) {
  for (const auto& [size, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const Atom* least = other->atom();
    if (least == nullptr || least->kind != AtomKind::kMin) continue;
    for (const std::size_t i : {0, 1}) {
      const std::optional<std::int64_t> most = least->operands[i].constant();
      // If it were 1, any size would do.
      if (most && *most > 1 && least->operands[1 - i] == *size) return AtMost{*size, *most};
    }
  }
  return std::nullopt;
}

bool DimExpr::IsWindow(const DimExpr& window, const DimExpr& size) {
  for (const Term& term : window.terms_) {
    if (term.factors.size() != 1 || term.factors[0]->kind != AtomKind::kMin) continue;
    for (const std::size_t i : {0, 1}) {
      const std::optional<std::int64_t> most = term.factors[0]->operands[i].constant();
      if (most && window.Given({term.factors[0]->operands[1 - i], *most}) == size) return true;
    }
  }
  return false;
}

DimExpr DimExpr::Given(const AtMost& fact) const {
  return Rebuilt([&](const Atom& atom) -> std::optional<DimExpr> {
    if (atom.kind == AtomKind::kSymbol) return Symbol(atom.text);
    if (atom.kind != AtomKind::kMin) return std::nullopt;
    for (const std::size_t i : {0, 1}) {
      const std::optional<std::int64_t> most = atom.operands[i].constant();
      if (most && *most >= fact.most && IsAtLeast(fact.size, atom.operands[1 - i], kComparedDepth))
        return atom.operands[1 - i];
    }
    return std::nullopt;
  });
}

DimExpr DimExpr::Replaced(const Replacement& of_symbol) const {
  return Rebuilt([&](const Atom& atom) -> std::optional<DimExpr> {
    if (atom.kind != AtomKind::kSymbol) return std::nullopt;
    return of_symbol(atom.text).value_or(Symbol(atom.text));
  });
}

DimExpr DimExpr::Rebuilt(const AtomReplacement& of_atom) const {
  DimExpr sum = 0;
  for (const Term& term : terms_) {
    DimExpr product = term.coefficient;
    for (const AtomPtr& factor : term.factors) product = product * RebuiltAtom(*factor, of_atom);
    sum = sum + product;
  }
  return sum;
}

DimExpr DimExpr::RebuiltAtom(const Atom& atom, const AtomReplacement& of_atom) {
  if (const std::optional<DimExpr> other = of_atom(atom)) return *other;
  DimExpr value = atom.operands[0].Rebuilt(of_atom);
  for (std::size_t i = 1; i < atom.operands.size(); ++i) {
    const DimExpr next = atom.operands[i].Rebuilt(of_atom);
    value = atom.kind == AtomKind::kFloorDiv ? FloorDiv(value, next)
            : atom.kind == AtomKind::kMax    ? Max(value, next)
            : atom.kind == AtomKind::kMin    ? Min(value, next)
                                             : Broadcast(value, next);
  }
  return value;
}

void DimExpr::CollectSymbols(std::set<std::string>* names) const {
  for (const Term& term : terms_) {
    for (const AtomPtr& factor : term.factors) {
      if (factor->kind == AtomKind::kSymbol) names->insert(factor->text);
      for (const DimExpr& operand : factor->operands) operand.CollectSymbols(names);
    }
  }
}

std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (const DimExpr& dim : shape) text += (text.size() == 1 ? "" : ", ") + dim.text();
  return text + "]";
}

DimExpr ProductOf(const Shape& shape) {
  DimExpr product = 1;
  for (const DimExpr& dim : shape) product = product * dim;
  return product;
}

std::optional<std::vector<std::int64_t>> ConstantDims(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (const DimExpr& dim : shape) {
    const std::optional<std::int64_t> value = dim.constant();
    if (!value) return std::nullopt;
    dims.push_back(*value);
  }
  return dims;
}

Shape ShapeOfInts(const std::vector<std::int64_t>& dims) { return Shape(dims.begin(), dims.end()); }

}  // namespace rewire::compiler
