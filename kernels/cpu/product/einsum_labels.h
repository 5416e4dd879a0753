// SPDX-License-Identifier: Apache-2.0
//
// An equation of Einstein summation, and what its labels are in a call.
#pragma once

#include <algorithm>
#include <string>

#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

inline constexpr int kMaxEinsumOperands = contract::EinsumEquation::kMostOperands;
inline constexpr int kMaxLabels = 2 * kMaxKernelRank;
inline constexpr char kEllipsis = contract::EinsumEquation::kEllipsis;

struct Equation : contract::EinsumEquation {
  Status Read(Attributes& attributes) {
    attributes.Require("equation");
    return Parse(attributes.String("equation", ""), kShapeError);
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
    std::size_t longest = 0;
    if (Status s = equation.FindEllipsis(shapes, &longest, kShapeError); !s.ok()) return s;
    const auto ellipsis = static_cast<int>(longest);
    const auto add = [&](char name) {
      for (int k = 0; name == kEllipsis && k < ellipsis; ++k) Add(static_cast<char>(k));
      if (name != kEllipsis && Find(name) < 0) Add(name);
    };
    if (equation.result.size() + longest > kMaxKernelRank)
      return ValueError("the result's rank is over ", kMaxKernelRank);
    for (char name : equation.result) add(name);
    kept = count;
    for (const std::string& term : equation.operands) {
      if (Equation::HasEllipsis(term) && !Equation::HasEllipsis(equation.result) && Find(0) < 0)
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
