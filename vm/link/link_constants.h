// SPDX-License-Identifier: Apache-2.0
//
// Gives constants their memory at link time: data from the file, parameters from the host, and what `__init`
// has computed (vm/run/bind_program.cc).
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

// Takes the donor's computed constants.
void ShareComputed(ProgramRep* rep, const ProgramRep& donor);

// Checks what `__init` has computed for a constant. Returns equal memory that another Program has, or else
// the tensor itself.
Result<Tensor> ShareComputedTensor(const ProgramRep& rep, const Constant& constant, const Tensor& computed);
// Places such a tensor.
Result<RewireFFIAny> PlaceComputed(const ProgramRep& rep, const Constant& constant, const Tensor& computed,
                                   WorkMeter* meter);

// Finds the memory ranges of the constants, once all of them exist.
void FindConstantRanges(ProgramRep* rep);

}  // namespace rewire
