// SPDX-License-Identifier: Apache-2.0
//
// An equation of Einstein summation, and what its labels are in a call.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

inline constexpr int kMaxEinsumOperands = 8;
inline constexpr int kMaxLabels = 2 * kMaxKernelRank;
inline constexpr char kEllipsis = '.';

// "ij,jk->ik", without spaces and with the result spelled out; "..." is one '.'.
struct Equation {
  std::vector<std::string> operands;
  std::string result;

  Status Read(Attributes& attributes) {
    attributes.Require("equation");
    const std::string given = attributes.String("equation", "");
    std::string text;
    for (char c : given) {
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
    result = arrow == std::string::npos ? Implied() : text.substr(arrow + 2);
    if (operands.size() > kMaxEinsumOperands)
      return ValueError("the equation has more than ", kMaxEinsumOperands, " operands");
    for (const std::string& operand : operands) {
      if (!IsTerm(operand)) return ValueError("attribute 'equation' is '", given, "', which is no equation");
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
      const bool known = std::any_of(operands.begin(), operands.end(), [&](const std::string& operand) {
        return operand.find(result[i]) != std::string::npos;
      });
      if ((!known && result[i] != kEllipsis) || result.find(result[i], i + 1) != std::string::npos ||
          !IsTerm(result)) {
        return ValueError("attribute 'equation' is '", given,
                          "': its result is no list of different labels of its "
                          "operands");
      }
    }
    return Status();
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
  std::string Implied() const {
    std::string all;
    for (const std::string& operand : operands) all += operand;
    std::string once;
    for (char c : all) {
      if (c != kEllipsis && std::count(all.begin(), all.end(), c) == 1) once += c;
    }
    std::sort(once.begin(), once.end());
    const bool has_ellipsis = all.find(kEllipsis) != std::string::npos;
    return (has_ellipsis ? std::string(1, kEllipsis) : "") + once;
  }
};

// The labels of one call: those of the result first, in its order, then those that are summed.
struct Labels {
  int count = 0;
  int kept = 0;
  char names[kMaxLabels];
  std::int64_t sizes[kMaxLabels];
  std::int64_t strides[kMaxLabels][kMaxEinsumOperands];  // 0 where an operand lacks or repeats it
  std::uint32_t operands[kMaxLabels];                    // a bit for each that names it

  Status Resolve(const Equation& equation, const ShapeView* shapes) {
    int ellipsis = 0;  // how many axes the longest one stands for
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const std::string& term = equation.operands[i];
      const bool has = term.find(kEllipsis) != std::string::npos;
      const int rest = static_cast<int>(shapes[i].size()) - static_cast<int>(term.size()) + (has ? 1 : 0);
      if (rest < 0 || (rest > 0 && !has)) {
        return ValueError("operand ", i, " has shape ", shapes[i], ", expected the rank of '", term, "'");
      }
      if (has) ellipsis = std::max(ellipsis, rest);
    }
    const auto add = [&](char name) {
      for (int k = 0; name == kEllipsis && k < ellipsis; ++k) Add(static_cast<char>(k));
      if (name != kEllipsis && Find(name) < 0) Add(name);
    };
    if (equation.result.size() + static_cast<std::size_t>(ellipsis) > kMaxKernelRank)
      return ValueError("the result's rank is over ", kMaxKernelRank);
    for (char name : equation.result) add(name);
    kept = count;
    for (const std::string& term : equation.operands) {
      if (term.find(kEllipsis) != std::string::npos && equation.result.find(kEllipsis) == std::string::npos &&
          Find(0) < 0)
        add(kEllipsis);
      for (char name : term) {
        if (name == kEllipsis) continue;
        if (count + ellipsis >= kMaxLabels)
          return ValueError("the equation has more than ", kMaxLabels, " labels");
        add(name);
      }
    }
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      if (Status s = Place(equation.operands[i], static_cast<int>(i), shapes[i], ellipsis); !s.ok()) return s;
    }
    return Status();
  }
  Dims Result() const { return Dims(ShapeView(sizes, static_cast<std::size_t>(kept))); }

  // The labels that some of the operands name: those for which `keeps` is true, then the others. Others of
  // these operands have size 1.
  template <typename Keeps>
  Labels Of(std::uint32_t some, const Keeps& keeps) const {
    Labels part;
    for (const bool now_kept : {true, false}) {
      for (int l = 0; l < count; ++l) {
        if ((operands[l] & some) == 0 || keeps(l) != now_kept) continue;
        part.Add(names[l]);
        bool is_wide = false;
        for (int i = 0; i < kMaxEinsumOperands; ++i) {
          part.strides[part.count - 1][i] = strides[l][i];
          is_wide |= (some >> i & 1) != 0 && strides[l][i] != 0;
        }
        part.sizes[part.count - 1] = is_wide ? sizes[l] : 1;
        part.operands[part.count - 1] = operands[l];
      }
      if (now_kept) part.kept = part.count;
    }
    return part;
  }

  // Operand i becomes a dense tensor of the result of `part`.
  void Replace(int i, const Labels& part) {
    const Dims dense = DenseStrides(part.Result().view());
    for (int l = 0; l < count; ++l) {
      operands[l] &= ~(1U << i);
      strides[l][i] = 0;
      for (int k = 0; k < part.kept; ++k) {
        if (part.names[k] != names[l]) continue;
        operands[l] |= 1U << i;
        strides[l][i] = part.sizes[k] == 1 ? 0 : dense[k];
      }
      if (operands[l] == 0) sizes[l] = 1;  // summed already
    }
  }
  // Operand i is none any more.
  void Drop(int i) {
    for (int l = 0; l < count; ++l) {
      operands[l] &= ~(1U << i);
      strides[l][i] = 0;
    }
  }

 private:
  void Add(char name) {
    names[count] = name;
    sizes[count] = 1;
    operands[count] = 0;
    std::fill_n(strides[count], kMaxEinsumOperands, 0);
    ++count;
  }
  int Find(char name) const {
    for (int i = 0; i < count; ++i) {
      if (names[i] == name) return i;
    }
    return -1;
  }
  // Axes of an ellipsis have the names 0, 1, ... and are aligned to the right.
  Status Place(const std::string& term, int operand, ShapeView shape, int ellipsis) {
    const Dims dense = DenseStrides(shape);
    int axis = 0;
    const int own = static_cast<int>(shape.size()) - static_cast<int>(term.size()) + 1;
    for (char name : term) {
      const int axes = name == kEllipsis ? own : 1;
      for (int k = 0; k < axes; ++k, ++axis) {
        const int label = Find(name == kEllipsis ? static_cast<char>(ellipsis - own + k) : name);
        const std::int64_t dim = shape[static_cast<std::size_t>(axis)];
        std::int64_t& size = sizes[label];
        operands[label] |= 1U << operand;
        if (dim != size && dim != 1 && size != 1) {
          return ValueError("axis ", axis, " of operand ", operand, " with shape ", shape, " is ", dim,
                            ", expected ", size, " as the label's others");
        }
        if (size == 1) size = dim;
        if (dim != 1) strides[label][operand] += dense[axis];
      }
    }
    return Status();
  }
};

}  // namespace rewire::kernel::cpu
