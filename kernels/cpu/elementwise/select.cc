// SPDX-License-Identifier: Apache-2.0
// Choosing between two tensors by a third.
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

struct Where {
  static constexpr const char* kName = names::kWhere;
  Status operator()(TensorView condition, TensorView a, TensorView b, TensorView out) const {
    Elementwise<3> loop(out, {condition, a, b}, {"condition", "a", "b"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (!condition.Is<bool>()) return WrongDType(Bools(), "condition", condition);
    if (Status s = Checks().SameDType("b", b, "a", a).SameDType("out", out, "a", a).Take(); !s.ok()) return s;
    return ForElementSize("a", a, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return loop.Run<T, std::uint8_t, T, T>([](std::uint8_t take, T x, T y) { return take != 0 ? x : y; });
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
