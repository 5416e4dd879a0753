// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/verifier.h>.
//
// The verifier decides whether a module may run. docs/verification.md lists its rules, each with a test file.
#pragma once

#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/limits.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Returns OK, or the first broken rule as kVerificationFailed with function, pc, instruction text, expected
// and given. Also fails with kDeadlineExceeded.
REWIRE_API Status VerifyModule(const Module& module, const FormatLimits& limits = {});

// The same, but counts its work on the caller's meter, so that several modules can share one budget.
REWIRE_API Status VerifyModule(const Module& module, const FormatLimits& limits, WorkMeter* meter);
// The budget that the limits allow for modules of this total size (module_size.h).
REWIRE_API WorkMeter::Budget VerifierBudget(std::uint64_t module_size, const FormatLimits& limits);

}  // namespace rewire
