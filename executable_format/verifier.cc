// SPDX-License-Identifier: Apache-2.0
#include "executable_format/verifier.h"

#include "executable_format/verify/context.h"

namespace rewire {

Status VerifyModule(const Module& module, const FormatLimits& limits) {
  if (Status status = verify::CheckTables(module, limits); !status) return status;
  if (Status status = verify::CheckSignatures(module, limits); !status) return status;
  std::uint64_t steps = limits.verifier_steps;
  for (const Function& function : module.functions) {
    Result<verify::Leaders> leaders = verify::CheckStructure(module, function, limits);
    if (!leaders) return Forward(leaders);
    if (Status status = verify::CheckFlow(module, function, *leaders, limits, &steps); !status) return status;
  }
  return verify::CheckInit(module);
}

}  // namespace rewire
