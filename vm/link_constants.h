// SPDX-License-Identifier: Apache-2.0
// The part of linking that gives constants their memory: data from the file, parameters from the host,
// computed ones from `__init`.
#pragma once

#include "base/span.h"
#include "base/status.h"
#include "vm/parameter_set.h"
#include "vm/program_rep.h"

namespace rewire {

// Places data constants and binds parameters. With a donor of the same code the data constants are its, and
// so are the parameters that no set names. All missing, unknown and mismatched parameters are one error.
Status LinkConstants(ProgramRep* rep, Span<const ParameterSet> sets, bool ignore_extra,
                     const ProgramRep* donor);

// Runs `__init`, if there is one, and puts its results into the computed constants. Those of a donor of the
// same code serve when all that `__init` may load is the donor's.
Status RunInit(const Program& program, ProgramRep* rep, const ProgramRep* donor);

// Finds where in memory the constants lie, once all are there.
void FindConstantRanges(ProgramRep* rep);

}  // namespace rewire
