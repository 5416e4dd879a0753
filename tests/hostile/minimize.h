// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rewire/tests/hostile/mutator.h"

namespace rewire::hostile {

// The least of a mutant that still has the finding that it has: changes are left out, then instructions.
// Prints what is left.
Bytes Minimize(const Mutator& mutator, std::uint64_t number);

}  // namespace rewire::hostile
