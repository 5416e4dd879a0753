// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/forget_code.h"

#include <sys/mman.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rewire::serve {
namespace {

// One mapping of a file, as /proc/self/smaps has it.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string rights;
  std::string file;
  bool as_in_file = false;  // no page has been written, not even by the dynamic linker or a debugger
};

// Reads the first line of a mapping: "7f12a000-7f12b000 r-xp 00001000 fe:00 123   /usr/lib/x.so". False for
// other lines, and for mappings without a file.
bool ReadHead(std::string_view line, Mapping* mapping) {
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, mapping->begin, 16);
  if (first.ptr == line.data() || first.ptr == end || *first.ptr != '-') return false;
  const auto last = std::from_chars(first.ptr + 1, end, mapping->end, 16);
  if (end - last.ptr < 6 || *last.ptr != ' ') return false;
  mapping->rights.assign(last.ptr + 1, 4);
  const std::size_t path = line.find('/');
  if (path == std::string_view::npos) return false;
  mapping->file.assign(line.substr(path));
  return true;
}

std::vector<Mapping> Mappings() {
  std::vector<Mapping> mappings;
  std::ifstream smaps("/proc/self/smaps");
  bool of_file = false;
  for (std::string line; std::getline(smaps, line);) {
    Mapping mapping;
    if (line.find('-') < line.find(' ')) {
      of_file = ReadHead(line, &mapping);
      if (of_file) mappings.push_back(mapping);
    } else if (of_file && line.rfind("Anonymous:", 0) == 0) {
      mappings.back().as_in_file = line.find(" 0 kB") != std::string::npos;
    }
  }
  return mappings;
}

}  // namespace

void ForgetCode() {
  const std::vector<Mapping> mappings = Mappings();
  std::set<std::string> programs;
  for (const Mapping& mapping : mappings) {
    if (mapping.rights == "r-xp") programs.insert(mapping.file);
  }
  for (const Mapping& mapping : mappings) {
    const bool is_read = mapping.rights == "r-xp" || mapping.rights == "r--p";
    if (!is_read || !mapping.as_in_file || programs.count(mapping.file) == 0) continue;
    // It changes nothing that the process sees, so that a failure needs no answer.
    madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MADV_DONTNEED);
  }
}

}  // namespace rewire::serve
