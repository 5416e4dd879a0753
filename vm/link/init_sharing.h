// SPDX-License-Identifier: Apache-2.0
//
// Programs share what `__init` computes. Its results follow from its code, its kernels and the constants that
// it loads. If a Program that is alive has the same, its results are taken, and `__init` does not run.
//
// They also give the results their memory: many weights in one block, which may have huge pages.
//
// librewire asks by these functions, and librewire_prepare has them (prepare/init_sharing.cc), because not
// every host needs them. LinkOptions::init_sharing is null for the others.
#pragma once

#include <cstdint>
#include <memory>

#include "rewire/base/array.h"
#include "rewire/base/work_meter.h"
#include "rewire/vm/tensor.h"

namespace rewire {

struct ProgramRep;

// Memory for the results of `__init`, by output. A result without a tensor is made elsewhere.
struct InitMemory {
  Array<Tensor> results;
  std::uint64_t bytes = 0;  // of the block that they lie in; 0: there is none, and no `results`
};

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
  // Memory for the results that the plan of `__init` can make there, in one block of at most `most` bytes.
  InitMemory (*memory)(const ProgramRep& rep, std::uint32_t init, std::uint64_t most);
  // Moves the results that still lie in that block to a smaller one, because other Programs have equals of
  // the rest, and a block is freed as a whole. False if nothing was moved; so if there is no memory for it.
  bool (*move)(const ProgramRep& rep, InitMemory* memory, Array<Tensor>* results);
};

}  // namespace rewire
