// SPDX-License-Identifier: Apache-2.0
//
// vm-inspect for a shared library: its kernels, and the model inside if TVM exported one.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire::tools {

struct LibraryReport {
  std::string path;
  std::string description;  // with the calling convention
  struct Kernel {
    std::string name;
    std::string documentation;
    std::string metadata;
    std::string work;  // what its row declares, or what is wrong with that; empty: nothing
  };
  std::vector<Kernel> kernels;
  std::optional<Executable> model;
};

// Loads the library as a program would, which runs its code. Also fails if the model inside is damaged.
Result<LibraryReport> InspectLibrary(const std::string& path);

// With `all`, also what is inside the library's model.
std::string LibraryText(const LibraryReport& library, bool all);
nlohmann::ordered_json LibraryJson(const LibraryReport& library);

}  // namespace rewire::tools
