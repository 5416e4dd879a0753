// SPDX-License-Identifier: Apache-2.0
// vm-inspect on an .rwx file: how it is divided, what takes room, whether it is whole.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/span.h"
#include "base/status.h"
#include "executable_format/executable.h"

namespace rewire::tools {

struct SectionReport {
  std::uint32_t id = 0;
  std::string name;  // "section 77" for one that this version does not know
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;  // as the file says; 0 for one whose items have their own
  bool own_checksums = false;
  bool inside = true;  // lies in the file
  bool whole = true;   // the bytes have the checksum that the file says
};

// The section table as it stands, also of a damaged file. kInvalidFile when there is none to be read.
Result<std::vector<SectionReport>> ReadSections(Span<const std::byte> file);

struct Inspection {
  std::string path;
  std::uint64_t file_size = 0;
  std::uint16_t major = 0, minor = 0;
  std::vector<SectionReport> sections;
  Result<Executable> executable = Fail(StatusCode::kInternal, "not opened");  // or why it would not run
  std::vector<std::string> damaged_constants;                                 // only looked for with `check`
  bool checked = false;

  bool whole() const;
};

// Opens the file as a host would. `check` also reads and checks every constant. Errors: the file cannot be
// read or is no executable at all.
Result<Inspection> InspectExecutable(const std::string& path, bool check);

std::string InspectionText(const Inspection& inspection);
nlohmann::ordered_json InspectionJson(const Inspection& inspection);

}  // namespace rewire::tools
