// SPDX-License-Identifier: Apache-2.0
// vm-inspect on a bundle: which models it has and what they share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/array.h"
#include "base/status.h"
#include "executable_format/bundle.h"

namespace rewire::tools {

struct BundleReport {
  std::string path;
  std::uint64_t file_size = 0;
  std::uint64_t stored_bytes = 0;    // of constants, each once
  std::uint64_t constant_bytes = 0;  // of the models' constants, were they files of their own
  Array<BundledExecutable> models;
};

// Opens the file as a host would; `check` reads every constant, too. Errors as OpenBundle.
Result<BundleReport> InspectBundle(const std::string& path, bool check);

std::string BundleText(const BundleReport& report);
nlohmann::ordered_json BundleJson(const BundleReport& report);

}  // namespace rewire::tools
