// SPDX-License-Identifier: Apache-2.0
// Activations of vectors of floats; included as vector_functions-inl.h is.
#if defined(REWIRE_KERNELS_CPU_ACTIVATED_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_ACTIVATED_
#undef REWIRE_KERNELS_CPU_ACTIVATED_
#else
#define REWIRE_KERNELS_CPU_ACTIVATED_
#endif

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

// No activation.
struct SameVector {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D, V x) const {
    return x;
  }
};

// The factor and the term behind an activation, rounded as two operators round.
struct MoveOfVector {
  float scale, shift;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Add(RoundedProduct(x, hn::Set(d, scale)), hn::Set(d, shift));
  }
};

inline MoveOfVector MoveOf(const Activation& activation) {
  return {activation.post_scale, activation.post_shift};
}

// Calls visit(f) with the activation's function of a vector, also where it takes many instructions.
template <class Visit>
HWY_INLINE void VisitFunction(const Activation& activation, const Visit& visit) {
  switch (activation.kind) {
    case Activation::kNone:
      return visit(SameVector());
    case Activation::kRelu:
      return visit(ReluOfVector());
    case Activation::kClip:
      return visit(ClipOfVector{activation.alpha, activation.beta});
    case Activation::kSigmoid:
      return visit(SigmoidOfVector());
    case Activation::kTanh:
      return visit(TanhOfVector());
    case Activation::kHardSwish:
      return visit(HardSwishOfVector());
    case Activation::kGelu:
      return visit(GeluOfVector());
    case Activation::kSwish:
      return visit(SwishOfVector());
    case Activation::kLeakyRelu:
      return visit(PReluOfVector{activation.alpha});
  }
}

template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V Activated(D d, V x, const Activation& activation) {
  V result = x;
  VisitFunction(activation, [&](const auto& f) { result = f(d, x); });
  return activation.moves ? MoveOf(activation)(d, result) : result;
}

// If the activation takes a few instructions, calls visit(f) with its function of a vector. It is then
// compiled into the loop that computes the vectors; a call would save all of their registers. Returns
// whether that is so, also where there is none; other activations are for ActivateRows.
template <class Visit>
HWY_INLINE bool VisitShort(const Activation& activation, const Visit& visit) {
  switch (activation.kind) {
    case Activation::kNone:
      return true;
    case Activation::kRelu:
      visit(ReluOfVector());
      return true;
    case Activation::kClip:
      visit(ClipOfVector{activation.alpha, activation.beta});
      return true;
    case Activation::kHardSwish:
      visit(HardSwishOfVector());
      return true;
    case Activation::kLeakyRelu:
      visit(PReluOfVector{activation.alpha});
      return true;
    case Activation::kSigmoid:
    case Activation::kTanh:
    case Activation::kGelu:
    case Activation::kSwish:
      break;
  }
  return false;
}

// The same, and then calls visit(f) with the factor and the term behind the function, if there are such and
// the function is visited. Each is compiled into the loop by itself: with pairs of them there is so much code
// that compilers no longer keep sums in registers.
template <class Visit>
HWY_INLINE bool VisitShortAndMove(const Activation& activation, const Visit& visit) {
  if (!VisitShort(activation, visit)) return false;
  if (activation.moves) visit(MoveOf(activation));
  return true;
}

// Activates `count` floats in each of `rows` rows, `step` apart, where they lie.
template <class D>
HWY_NOINLINE void ActivateRows(D d, const Activation& activation, float* data, std::int64_t rows,
                               std::int64_t step, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < rows; ++r, data += step) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      hn::StoreU(Activated(d, hn::LoadU(d, data + i), activation), d, data + i);
    if (i == count) continue;
    HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
    std::copy(data + i, data + count, rest);
    hn::Store(Activated(d, hn::Load(d, rest), activation), d, rest);
    std::copy_n(rest, count - i, data + i);
  }
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
