// SPDX-License-Identifier: Apache-2.0
//
// Makes the output plan of one function, before its callees' plans are known.
#pragma once

#include "rewire/vm/plan/origins.h"
#include "rewire/vm/plan/output_plan.h"

namespace rewire {

// A plan in which every leaf is copied for this reason and nothing is known about its inputs.
FunctionPlan NothingRewired(const ResultShape& result, CopyReason reason);

// Makes the plan from a finished analysis. If the meter is exhausted, nothing is rewired.
FunctionPlan PlanFunction(OriginAnalysis* analysis, const PlanRules& rules);

}  // namespace rewire
