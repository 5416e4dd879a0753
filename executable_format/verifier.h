// SPDX-License-Identifier: Apache-2.0
// The verifier: decides whether a module may run. docs/verification.md lists its rules, one test file each.
#pragma once

#include "base/export.h"
#include "base/status.h"
#include "executable_format/limits.h"
#include "executable_format/module.h"

namespace rewire {

// kVerificationFailed with the first broken rule: function, pc, instruction text, expected and given.
REWIRE_API Status VerifyModule(const Module& module, const FormatLimits& limits = {});

}  // namespace rewire
