// SPDX-License-Identifier: Apache-2.0
//
// Limits the cost of linking an executable.
#pragma once

#include "rewire/base/work_meter.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/parameter_set.h"

namespace rewire {

// Zeroes in the limits stand for the defaults, which follow from the sizes of what is linked.
WorkMeter::Budget LinkBudget(const Module& module, Span<const ParameterSet> parameters,
                             const LinkLimits& limits);

}  // namespace rewire
