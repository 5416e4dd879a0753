// SPDX-License-Identifier: Apache-2.0
//
// vm-inspect for a bundle: its models and what they share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/bundle.h"

namespace rewire::tools {

struct BundleReport {
  std::string path;
  std::uint64_t file_size = 0;
  std::uint64_t stored_bytes = 0;    // of constants, each counted once
  std::uint64_t constant_bytes = 0;  // of constants, if each model were a file of its own
  Array<BundledExecutable> models;
};

// Opens the file as a host would; `check` reads every constant, too. Errors as OpenBundle.
Result<BundleReport> InspectBundle(const std::string& path, bool check);

// The interface of each model; with `all`, what is inside, too.
std::string BundleText(const BundleReport& report, bool all);
nlohmann::ordered_json BundleJson(const BundleReport& report);

}  // namespace rewire::tools
