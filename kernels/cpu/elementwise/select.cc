// SPDX-License-Identifier: Apache-2.0
// Choosing between two tensors by a third.
#include <algorithm>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// If a condition is the same for a whole row, the row of the other tensor is not read.
struct Choose {
  template <typename T>
  T operator()(std::uint8_t take, T x, T y) const {
    return take != 0 ? x : y;
  }
};

template <typename T>
void RunRow(const Choose op, std::int64_t count, RowOf<T> out, RowOf<const std::uint8_t> take,
            RowOf<const T> a, RowOf<const T> b) {
  const auto same = [](T x) { return x; };
  if (take.step == 0 && count > 1) {
    const RowOf<const T> chosen = *take.data != 0 ? a : b;
    if (out.step == 1 && chosen.step == 0)
      std::fill_n(out.data, count, *chosen.data);
    else
      RunRow(same, count, out, chosen);
  } else {
    RunRow([op](std::uint8_t condition, T x, T y) { return op(condition, x, y); }, count, out, take, a, b);
  }
}

struct Where {
  static constexpr const char* kName = names::kWhere;
  Status operator()(TensorView condition, TensorView a, TensorView b, TensorView out) const {
    Elementwise<3> loop(out, {condition, a, b}, {"condition", "a", "b"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (!condition.Is<bool>()) return WrongDType(Bools(), "condition", condition);
    if (Status s = Checks().SameDType("b", b, "a", a).SameDType("out", out, "a", a).Take(); !s.ok()) return s;
    return ForElementSize("a", a, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return loop.Run<T, std::uint8_t, T, T>(Choose());
    });
  }
};

}  // namespace

std::span<const Kernel> SelectKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Where>("condition, a, b -> out over condition|a|b", "condition bool; a, b, out all", "",
                      "a where the condition holds, else b; all three broadcast", kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
