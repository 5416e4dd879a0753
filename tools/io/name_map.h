// SPDX-License-Identifier: Apache-2.0
//
// Gives a stripped model its names back, from the map that vm-strip wrote.
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/tools/io/open_model.h"

namespace rewire::tools {

// Replaces the model's executable by the same one with the names of the map, so that everything that is then
// said of it has them: inputs, errors, traces and profiles. Does nothing for an empty path.
//
// Errors: kNotFound, kIo; kInvalidArgument if the file is no map, or is the map of another executable.
Status RestoreNames(const std::string& map, OpenedModel* model);

}  // namespace rewire::tools
