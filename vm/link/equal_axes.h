// SPDX-License-Identifier: Apache-2.0
//
// EqualAxes: axes of a function's inputs that one symbol names. They have one size in a run.
//
// Code computes with the size of the first of them. Were another one longer or shorter, results would be
// those of sizes that nobody gave. So a run begins with the comparison of all pairs of this table, which
// linking makes: a function whose inputs share no symbols has none.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/inline.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/value/objects.h"

namespace rewire {

struct EqualAxes {
  struct Axis {
    std::uint32_t input;
    std::uint32_t axis;
  };
  Axis first;  // of the symbol
  Axis other;
};

// Looks at inputs that are tensors; those in tuples are not looked at.
Array<EqualAxes> FindEqualAxes(const Function& function);

REWIRE_INLINE std::int64_t SizeOfAxis(const RewireFFIAny* inputs, EqualAxes::Axis axis) {
  return TensorOf(inputs[axis.input])->tensor.shape[axis.axis];
}

// False if two axes of a pair differ. The inputs fit the function's signature.
REWIRE_INLINE bool AxesAreEqual(const Array<EqualAxes>& pairs, const RewireFFIAny* inputs) {
  for (const EqualAxes& pair : pairs) {
    if (SizeOfAxis(inputs, pair.first) != SizeOfAxis(inputs, pair.other)) return false;
  }
  return true;
}

// The error that names the symbol, both inputs and both sizes of the first pair that differs.
Status AxesDiffer(const Module& module, std::uint32_t function, const Array<EqualAxes>& pairs,
                  const RewireFFIAny* inputs);

}  // namespace rewire
