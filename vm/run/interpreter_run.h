// SPDX-License-Identifier: Apache-2.0
//
// The beginning and the end of a run, inline: a call of a small function costs no more than its instructions
// do.
#pragma once

#include <cstring>

#include "rewire/base/inline.h"
#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/run/kernel_context.h"

namespace rewire {

// The caller of this fills the registers of the callee's inputs, and nothing may fail before it has.
REWIRE_INLINE bool Interpreter::EnterHere(const LinkedFunction& callee, Word function, const Word* return_pc,
                                          Word dst, std::uint32_t destinations) {
  VmImpl& vm = vm_;  // the compiler would read it anew behind every write
  if (__builtin_expect(vm.frames.size() >= vm.limits.depth, 0)) return FailDepth();
  const std::uint32_t count = callee.register_count;
  const std::uint32_t inputs = callee.input_count;
  const std::uint32_t base = vm.stack.size();
  if (__builtin_expect(callee.prepares, 0) && !PrepareFrame(function)) return false;
  if (!vm.stack.Resize(std::uint64_t{base} + count)) return FailMemory(count * sizeof(RewireFFIAny));
  Frame* const frame = vm.frames.Add();
  if (__builtin_expect(frame == nullptr, 0)) {
    vm.stack.Pop(base);
    return FailMemory(sizeof(Frame));
  }
  const Word* const code = callee.code;
  *frame = {code, return_pc, function, base, dst, destinations};
  RewireFFIAny* const registers = vm.stack.data() + base;
  registers_ = registers;
  code_ = code;
  pc_ = code;
  destinations_ = destinations;
  FindSites(function);
  if (count > inputs) std::memset(registers + inputs, 0, (count - inputs) * sizeof(RewireFFIAny));
  return true;
}

// Inputs of this call alone pass to the registers, but for constants, which registers do not count. If
// outputs are bound, somebody may look at the inputs until the run ends.
REWIRE_INLINE void Interpreter::TakeInputs(std::uint32_t count, const RewireFFIAny* inputs, bool bound) {
  RewireFFIAny* const given = bound || inputs != vm_.given_inputs ? nullptr : vm_.given_inputs;
  RewireFFIAny* const registers = registers_;
  if (__builtin_expect(given == nullptr, 1)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      registers[i] = inputs[i];
      if (__builtin_expect(IsObjectKind(inputs[i].type_index), 1)) ObjectHeap::Retain(ObjectOf(inputs[i]));
    }
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    registers[i] = inputs[i];
    if (!ObjectHeap::IsUncounted(inputs[i])) given[i] = {};
  }
}

REWIRE_INLINE Status Interpreter::Run(std::uint32_t function, const RewireFFIAny* inputs, bool bound,
                                      RewireFFIAny* result) {
  const LinkedFunction& target = rep_.functions[function];
  steps_left_ = vm_.limits.steps;
  const KernelContext context(&vm_);
  bool ok =
      (!bound || BindDestinations(function)) && EnterHere(target, function, nullptr, 0, bound ? 0 : kNone);
  if (ok) {
    TakeInputs(target.input_count, inputs, bound);
    ok = __builtin_expect(vm_.observer == nullptr, 1) ? Loop() : LoopObserved();
  }
  if (__builtin_expect(vm_.work.busy(), 0)) ok = EndWork(ok);
  if (__builtin_expect(!ok, 0)) {
    Unwind();
    return status_;
  }
  *result = result_;
  return {};
}

}  // namespace rewire
