// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/passes.h"

namespace rewire::compiler {

std::span<const Pass> Passes() {
  static constexpr Pass kPasses[] = {
      {"dead-code", RemoveDeadCode},
      {"common-subexpressions", ShareCommonSubexpressions},
  };
  return kPasses;
}

}  // namespace rewire::compiler
