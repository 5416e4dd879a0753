// SPDX-License-Identifier: Apache-2.0
//
// vm-inspect for an .rwx file: its sections, the sizes of its parts, and whether it is damaged.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire::tools {

struct SectionReport {
  std::uint32_t id = 0;
  std::string name;  // "section 77" for one that this version does not know
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;  // as in the file; 0 if the section's items have their own
  bool own_checksums = false;
  bool inside = true;  // lies inside the file
  bool whole = true;   // the bytes match the checksum in the file
};

// Reads the section table, even of a damaged file. Errors: kInvalidFile if there is no readable table.
Result<std::vector<SectionReport>> ReadSections(Span<const std::byte> file);

struct Inspection {
  std::string path;
  std::uint64_t file_size = 0;
  std::uint16_t major = 0, minor = 0;
  std::vector<SectionReport> sections;
  std::vector<SectionReport>
      compressed;  // the sections of a compressed file, as they are without compression
  // or the reason why it would not run
  Result<Executable> executable = Fail(StatusCode::kInternal, "not opened");
  std::vector<std::string> damaged_constants;  // filled only with `check`
  bool checked = false;

  bool whole() const;
};

// Opens the file as a host would. `check` also reads and checks every constant. Fails if the file cannot be
// read or is no executable.
Result<Inspection> InspectExecutable(const std::string& path, bool check);

// The interface of the program; with `all`, or if something is damaged, also the sections, what is inside and
// what takes room.
std::string InspectionText(const Inspection& inspection, bool all);
nlohmann::ordered_json InspectionJson(const Inspection& inspection);

}  // namespace rewire::tools
