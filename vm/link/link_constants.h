// SPDX-License-Identifier: Apache-2.0
//
// Gives constants their memory at link time: data from the file, parameters from the host, computed constants
// from `__init`.
#pragma once

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/base/work_meter.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/parameter_set.h"

namespace rewire {

// Places data constants and binds parameters. If there is a donor with the same code, its data constants are
// used, and its parameters that no set names. One error names all missing, unknown and mismatched parameters.
// The meter counts the work, and the memory of what is decoded or copied.
Status LinkConstants(ProgramRep* rep, Span<const ParameterSet> sets, bool ignore_extra,
                     const ProgramRep* donor, WorkMeter* meter);

// Runs `__init`, if there is one, and stores its results in the computed constants. If a donor has the same
// code and everything that `__init` may load, its computed constants are used instead. `__init` may use what
// the meter has left.
Status RunInit(const Program& program, ProgramRep* rep, const ProgramRep* donor, WorkMeter* meter);

// Finds the memory ranges of the constants, once all of them exist.
void FindConstantRanges(ProgramRep* rep);

}  // namespace rewire
