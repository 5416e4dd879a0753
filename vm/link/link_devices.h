// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/base/status.h"
#include "rewire/base/work_meter.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/program.h"

namespace rewire {

// Resolves the executable's device table: from what the host gave, or by the libraries that Rewire comes
// with. All devices that cannot be had are in one error.
Status LinkDevices(LinkedCode* code, const LinkOptions& options, WorkMeter* meter);

}  // namespace rewire
