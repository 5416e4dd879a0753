// SPDX-License-Identifier: Apache-2.0
//
// This header has what a run does, inline in what begins it.
#pragma once

#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/vm/loader/kernel_context.h"
#include "rewire/vm/run/interpreter.h"

namespace rewire {

// Inputs of this call alone pass to the registers, but for constants, which registers do not count. If
// outputs are bound, somebody may look at the inputs until the run ends.
REWIRE_INLINE void Interpreter::TakeInputs(std::uint32_t count, const RewireFFIAny* inputs, bool bound) {
  RewireFFIAny* const given = bound || inputs != vm_.given_inputs ? nullptr : vm_.given_inputs;
  RewireFFIAny* const registers = registers_;
  if (REWIRE_LIKELY(given == nullptr)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      registers[i] = inputs[i];
      if (REWIRE_LIKELY(IsObjectKind(inputs[i].type_index))) ObjectHeap::Retain(ObjectOf(inputs[i]));
    }
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    registers[i] = inputs[i];
    if (!ObjectHeap::IsUncounted(inputs[i])) given[i] = {};
  }
}

// Returns the result, or nothing if the run failed.
REWIRE_INLINE RewireFFIAny Interpreter::EndRun(bool ok) {
  if (REWIRE_UNLIKELY(vm_.work.open())) ok = EndWork(ok);
  if (REWIRE_LIKELY(ok)) return result_;
  Unwind();
  return {};
}

REWIRE_INLINE void Interpreter::RunFastPath(std::uint32_t function, const RewireFFIAny* inputs,
                                            RewireFFIAny* result) {
  const KernelContext context(&vm_);
  bool ok = Enter(function, nullptr, 0, kNone);
  if (ok) {
    TakeInputs(rep_.functions[function].input_count, inputs, false);
    ok = Loop();
  }
  *result = EndRun(ok);
}

REWIRE_INLINE void Interpreter::Run(std::uint32_t function, const RewireFFIAny* inputs, bool bound,
                                    RewireFFIAny* result) {
  const LinkedFunction& target = rep_.functions[function];
  const KernelContext context(&vm_);
  bool ok = (!bound || BindDestinations(function)) && Enter(function, nullptr, 0, bound ? 0 : kNone);
  if (ok) {
    TakeInputs(target.input_count, inputs, bound);
    ok = REWIRE_LIKELY(vm_.observer == nullptr) ? Loop() : LoopObserved();
  }
  *result = EndRun(ok);
}

}  // namespace rewire
