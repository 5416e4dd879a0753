// SPDX-License-Identifier: Apache-2.0
// Kernels of every instruction set that this CPU has.
#pragma once

#include <hwy/targets.h>
#include <catch2/catch.hpp>
#include <functional>

namespace rewire::test {

// Calls `check` for every instruction set that this CPU has.
inline void ForEachTarget(const std::function<void()>& check) {
  for (std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    INFO(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace rewire::test
