// SPDX-License-Identifier: Apache-2.0
// Kernel calls, beside the same kernel called without a VM.
#include "rewire/tests/bench/vm_loops.h"

namespace rewire::bench {
namespace {

constexpr int kCalls = 10'000;

// Through a volatile pointer, which the compiler can neither inline nor take for the same in every round.
template <int kTensors>
void CallDirectly() {
  static volatile RewirePackedFunction kernel = EmptyKernel;
  static RewireFFIAny args[kTensors] = {};
  RewireFFIAny result{};
  // Checked after the loop: everything is divided by this, so nothing but the call may stand in it.
  int failed = 0;
  for (int i = 0; i < kCalls; ++i) failed |= kernel(nullptr, args, kTensors, &result);
  Require(failed == 0, "the empty kernel failed");
}

template <int kTensors>
void InvokePacked(CodeWriter& code) {
  std::vector<std::uint32_t> args(kTensors, kInput);
  args.back() = kTensor;
  code.InvokePacked(0, 1, kNone, args);
}

}  // namespace

int EmptyKernel(void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) { return 0; }

void AddCallCases(std::vector<Case>& cases) {
  cases.push_back({kDirectCall + std::string("1 tensor"), kCalls, CallDirectly<1>});
  cases.push_back({kDirectCall + std::string("3 tensors"), kCalls, CallDirectly<3>});
  cases.push_back({kDirectCall + std::string("8 tensors"), kCalls, CallDirectly<8>});
  AddLoops({{"InvokePacked, 1 tensor", 1, InvokePacked<1>},
            {"InvokePacked, 3 tensors", 1, InvokePacked<3>, Target{Target::kDirectCalls, 8}},
            {"InvokePacked, 8 tensors", 1, InvokePacked<8>},
            TypicalOp()},
           cases);
}

}  // namespace rewire::bench
