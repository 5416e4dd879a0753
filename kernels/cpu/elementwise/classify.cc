// SPDX-License-Identifier: Apache-2.0
// Kinds of floats: the output is boolean.
#include <cmath>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/elementwise_attributes.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

template <typename Predicate>
Status Classify(TensorView x, TensorView out, const Predicate& predicate) {
  Elementwise<1> loop(out, {x}, {"x"});
  if (Status s = loop.Check(); !s.ok()) return s;
  if (!out.Is<bool>()) return WrongDType(Bools(), "out", out);
  return ForType(AnyFloats(), "x", x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return loop.Run<std::uint8_t, T>(
        [&](T value) -> std::uint8_t { return predicate(static_cast<Computed<T>>(value)); });
  });
}

struct IsNaN {
  static constexpr const char* kName = names::kIsNan;
  Status operator()(TensorView x, TensorView out) const {
    return Classify(x, out, [](auto value) { return value != value; });
  }
};

struct IsInf : contract::IsInfAttributes {
  static constexpr const char* kName = names::kIsInf;
  static Status Make(Attributes& attributes, IsInf* isinf) {
    isinf->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    return Classify(x, out,
                    [this](auto value) { return std::isinf(value) && (value > 0 ? positive : negative); });
  }
};

}  // namespace

std::span<const Kernel> ClassifyKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<IsNaN>("x -> out over x", "x any float; out bool", "", "whether x is NaN", kElementwise),
      Describe<IsInf>("x -> out over x", "x any float; out bool", "detect_positive = 1, detect_negative = 1",
                      "whether x is infinite, of the signs asked for", kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
