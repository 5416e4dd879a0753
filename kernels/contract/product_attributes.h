// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels of products, as kernels of every kind read them, and the shapes of products.
// `Given` reads attributes by Bool and Float, as kernel::Attributes does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/kernels/contract/shape.h"

namespace rewire::contract {

// alpha * a * b + beta * c.
struct GemmAttributes {
  double alpha = 1;
  double beta = 1;
  bool transpose_a = false;
  bool transpose_b = false;

  template <typename Given>
  void Read(Given& given) {
    alpha = given.Float("alpha", 1);
    beta = given.Float("beta", 1);
    transpose_a = given.Bool("transA", false);
    transpose_b = given.Bool("transB", false);
  }
  // Whether this is a * b + c, where b may be transposed.
  bool IsPlain() const { return alpha == 1 && beta == 1 && !transpose_a; }

  // [M, N] of a * b.
  auto ProductSizes(const auto& a, const auto& b, auto* result, const auto& error) const
      -> decltype(error("")) {
    if (a.size() != 2 || b.size() != 2)
      return error("a has shape ", a, " and b ", b, ", expected rank 2 of both");
    const auto& depth = a[transpose_a ? 0 : 1];
    if (Differ(depth, b[transpose_b ? 1 : 0])) {
      return error("b has shape ", b, ", expected ", depth, " along axis ", transpose_b ? 1 : 0,
                   " as a of shape ", a);
    }
    result->push_back(a[transpose_a ? 1 : 0]);
    result->push_back(b[transpose_b ? 0 : 1]);
    return {};
  }
};

// numpy's matmul: [..., M, K] x [..., K, N], where a rank of 1 is a row or a column. The leading dimensions
// broadcast by `broadcast(a, b, &result)`.
template <typename Sizes>
auto MatMulSizes(const Sizes& a, const Sizes& b, const auto& broadcast, auto* result, const auto& error)
    -> decltype(error("")) {
  if (a.empty() || b.empty()) return error("a has shape ", a, " and b ", b, ", expected rank 1 or more");
  const bool row = a.size() == 1, column = b.size() == 1;
  const auto &depth = a[a.size() - 1], &of_b = b[b.size() - (column ? 1 : 2)];
  if (Differ(depth, of_b)) {
    return error("a has shape ", a, " and b ", b, ": the inner dimensions ", depth, " and ", of_b, " differ");
  }
  const Sizes a_batch(a.data(), row ? 0 : a.size() - 2), b_batch(b.data(), column ? 0 : b.size() - 2);
  if (auto fits = broadcast(a_batch, b_batch, result); !fits) return fits;
  if (!row) result->push_back(a[a.size() - 2]);
  if (!column) result->push_back(b[b.size() - 1]);
  return {};
}

// x [..., K] times w, [N, K] if it is transposed: x's shape with N in place of K.
auto DenseSizes(const auto& x, const auto& w, bool transposed, auto* result, const auto& error)
    -> decltype(error("")) {
  if (w.size() != 2) return error("w has shape ", w, ", expected rank 2");
  const auto& depth = w[transposed ? 1 : 0];
  if (x.empty() || Differ(x[x.size() - 1], depth)) {
    return error("x has shape ", x, ", expected ", depth, " as its last dimension as w of shape ", w);
  }
  for (std::size_t i = 0; i + 1 < x.size(); ++i) result->push_back(x[i]);
  result->push_back(w[transposed ? 0 : 1]);
  return {};
}

// An equation of Einstein summation: "ij,jk->ik", without spaces and with the result spelled out. An ellipsis
// is one '.'.
struct EinsumEquation {
  static constexpr std::size_t kMostOperands = 8;
  static constexpr char kEllipsis = '.';

  std::vector<std::string> operands;
  std::string result;

  auto Parse(const std::string& given, const auto& error) -> decltype(error("")) {
    std::string text;
    for (const char c : given) {
      if (c != ' ') text += c;
    }
    for (std::size_t at; (at = text.find("...")) != std::string::npos;) text.replace(at, 3, 1, kEllipsis);
    const std::size_t arrow = text.find("->");
    std::string_view left = std::string_view(text).substr(0, arrow);
    for (bool more = true; more;) {
      const std::size_t comma = left.find(',');
      operands.emplace_back(left.substr(0, comma));
      more = comma != std::string_view::npos;
      if (more) left = left.substr(comma + 1);
    }
    if (operands.size() > kMostOperands)
      return error("the equation has more than ", kMostOperands, " operands");
    std::string all;
    for (const std::string& operand : operands) {
      if (!IsTerm(operand)) return error("attribute 'equation' is '", given, "', which is no equation");
      all += operand;
    }
    result = arrow == std::string::npos ? Implied(all) : text.substr(arrow + 2);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const bool known = result[i] == kEllipsis || all.find(result[i]) != std::string::npos;
      if (!known || result.find(result[i], i + 1) != std::string::npos || !IsTerm(result)) {
        return error("attribute 'equation' is '", given,
                     "': its result is no list of different labels of its operands");
      }
    }
    return {};
  }

  static bool HasEllipsis(const std::string& term) { return term.find(kEllipsis) != std::string::npos; }
  // Sets how many axes the longest ellipsis of operands of these shapes stands for.
  auto FindEllipsis(const auto& shapes, std::size_t* longest, const auto& error) const
      -> decltype(error("")) {
    *longest = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool open = HasEllipsis(operands[i]);
      const std::size_t labels = operands[i].size() - (open ? 1 : 0), rank = shapes[i].size();
      if (rank < labels || (rank > labels && !open)) {
        return error("operand ", i, " has shape ", shapes[i], ", expected the rank of '", operands[i], "'");
      }
      *longest = std::max(*longest, rank - labels);
    }
    return {};
  }
  // The rank of the result, where the longest ellipsis stands for so many axes.
  std::size_t ResultRank(std::size_t ellipsis) const {
    return HasEllipsis(result) ? result.size() - 1 + ellipsis : result.size();
  }

 private:
  static bool IsTerm(const std::string& term) {
    const auto is_label = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == kEllipsis;
    };
    return std::all_of(term.begin(), term.end(), is_label) &&
           std::count(term.begin(), term.end(), kEllipsis) <= 1;
  }
  // The ellipsis, then every label that stands once, in alphabetical order.
  static std::string Implied(const std::string& all) {
    std::string once;
    for (const char c : all) {
      if (c != kEllipsis && std::count(all.begin(), all.end(), c) == 1) once += c;
    }
    std::sort(once.begin(), once.end());
    return (HasEllipsis(all) ? std::string(1, kEllipsis) : "") + once;
  }
};

}  // namespace rewire::contract
