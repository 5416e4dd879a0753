// SPDX-License-Identifier: Apache-2.0
//
// Finds models in files and folders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/models/settings.h"

namespace rewire::serve {

struct VersionFile {
  std::int64_t version = 1;
  std::string path;  // .rwx or .onnx
};

// All models under the paths of the settings, and those whose settings name a file, with the versions to
// load, the oldest first.
//
//   model.onnx, model.rwx       a file: version 1 of the model `model`
//   DIR/model.onnx              the same for each file of a folder
//   DIR/model/1/model.onnx      Triton's layout: the versions of `model` are numbers
//
// Errors: kNotFound; kInvalidArgument if two files are one model, a version is not there, or a folder has no
// model.
Result<std::map<std::string, std::vector<VersionFile>>> FindModels(const ServeSettings& settings);

}  // namespace rewire::serve
