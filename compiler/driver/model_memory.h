// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/compiler/import/model_file.h"
#include "rewire/executable_format/module.h"

namespace rewire::compiler {

// Constants that no pass has changed lie in the model's message, and each of them keeps all of it in memory.
// If they are at most half of the message, this copies them, so that the message goes with the model.
void LeaveMessage(const ModelFile& model, Module* module);

}  // namespace rewire::compiler
