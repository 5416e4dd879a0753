// SPDX-License-Identifier: Apache-2.0
// Calls that a kernel nearly takes, what its error says put right, and what spoils them.
#pragma once

#include <string>

#include "rewire/tests/fuzz/kernels/call.h"
#include "rewire/tests/fuzz/kernels/catalogue.h"

namespace rewire::test {

// Consistent dtypes, small shapes that mostly agree, attributes of the right kinds.
Call NearlyValid(const KernelOf& kernel, Dice& dice);

// Changes what the message names to what it expects. False when it does not tell.
bool Repair(const KernelOf& kernel, const std::string& error, Dice& dice, Call* call);

// Makes one thing hostile: a shape, dtype, value, stride, offset, attribute, a missing or overlapping
// argument.
void Spoil(const KernelOf& kernel, Dice& dice, Call* call);

}  // namespace rewire::test
