// SPDX-License-Identifier: Apache-2.0
//
// Programs share what `__init` computes. Its results follow from its code, its kernels and the constants that
// it loads. If a Program that is alive has the same, its results are taken, and `__init` does not run.
//
// librewire asks by these functions, and librewire_prepare has them (prepare/init_sharing.cc), because not
// every host needs them. LinkOptions::init_sharing is null for the others.
#pragma once

#include <memory>

#include "rewire/base/work_meter.h"

namespace rewire {

struct ProgramRep;

struct InitSharing {
  // Notes in `rep` what its `__init` loads. If a Program that is alive has the same, takes its computed
  // constants, and returns true. The search ends at the meter's deadline. The caller then counts
  // rep->init_bytes as if `__init` had run, so that no limit depends on other Programs. False if the meter
  // has not as much left: `__init` runs, and says so.
  //
  // If `donor` is not null, it has the same code and loads the same memory: its notes are taken, nothing is
  // searched, and the caller takes its constants.
  bool (*take)(ProgramRep* rep, const ProgramRep* donor, WorkMeter* meter);
  // Lets other Programs find this one, which has its computed constants now, until it is destroyed.
  void (*offer)(const std::shared_ptr<ProgramRep>& rep);
};

}  // namespace rewire
