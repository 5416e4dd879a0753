// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/verifier.h"

#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/module_size.h"
#include "rewire/executable_format/verify/context.h"

namespace rewire {
namespace {

// Modules that are accepted may have compressed constants, and checksums that are wrong. So a program
// with the verifier has what checks and decodes them (vm/link/stored_constants.h).
[[gnu::used]] Status (*const kChecksConstants)(const Constant&) = CheckConstantData;

}  // namespace

WorkMeter::Budget VerifierBudget(std::uint64_t module_size, const FormatLimits& limits) {
  WorkMeter::Budget budget;
  budget.stage = "verifying";
  budget.units = limits.verifier_steps != 0 ? limits.verifier_steps : DefaultWork(module_size);
  budget.units_option = "FormatLimits::verifier_steps";
  budget.units_code = StatusCode::kVerificationFailed;
  budget.deadline = limits.deadline;
  budget.deadline_option = "FormatLimits::deadline";
  return budget;
}

Status VerifyModule(const Module& module, const FormatLimits& limits) {
  WorkMeter meter(VerifierBudget(ModuleSize(module), limits));
  return VerifyModule(module, limits, &meter);
}

Status VerifyModule(const Module& module, const FormatLimits& limits, WorkMeter* meter) {
  // Tables, signatures, structure and what `__init` reaches: each byte is looked at a few times.
  if (Status status = meter->Charge(ModuleSize(module) / 4); !status) return status;
  if (Status status = verify::CheckTables(module, limits); !status) return status;
  if (Status status = verify::CheckDeviceCode(module, limits); !status) return status;
  if (Status status = verify::CheckSignatures(module, limits); !status) return status;
  for (const Function& function : module.functions) {
    Result<verify::Leaders> leaders = verify::CheckStructure(module, function, limits);
    if (!leaders) return Forward(leaders);
    if (Status status = verify::CheckFlow(module, function, *leaders, limits, meter); !status) return status;
  }
  if (Status status = meter->Check(); !status) return status;
  if (Status status = verify::CheckLoadsOfDeviceCode(module); !status) return status;
  return verify::CheckInit(module);
}

}  // namespace rewire
