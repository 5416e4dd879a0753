// SPDX-License-Identifier: Apache-2.0
// Attributes and shapes of kernels that chance does not find.
#pragma once

#include <string>

#include "rewire/tests/fuzz/kernels/call.h"

namespace rewire::test {

// A call of the kernel that it takes, or nearly. False for kernels that need none.
bool SeedOf(const std::string& kernel, Dice& dice, Call* call);
// The same for kernels of language models, by their names without "rewire.".
bool LanguageSeedOf(const std::string& name, Dice& dice, Call* call);

}  // namespace rewire::test
