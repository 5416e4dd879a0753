// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: the collectives of kernels/contract/collective.h over shared memory.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "rewire/executable_format/executable.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/tensor.h"

namespace rewire::test {

// The calls of collectives in a run.
struct Exchanged {
  std::size_t all_reduces = 0, all_gathers = 0, messages = 0;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The outputs of a rank, by name, or its error.
struct RankResult {
  std::string error;
  std::map<std::string, Tensor> outputs;
};

// Runs `main` of each executable on a thread of its own, at once, over the rank's inputs. A rank that waits
// for one that has failed or ended fails too.
std::vector<RankResult> RunRanks(const std::vector<Executable>& executables,
                                 const std::vector<NamedTensors>& inputs, Exchanged* exchanged = nullptr);

}  // namespace rewire::test
