// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/resident.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "rewire/tools/io/units.h"

namespace rewire::tools {

Resident ResidentMemory() {
  Resident resident;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    words >> name >> kibibytes;
    if (name == "VmRSS:") resident.now = kibibytes * 1024;
    if (name == "VmHWM:") resident.peak = kibibytes * 1024;
  }
  return resident;
}

Status CheckMachineHas(std::uint64_t bytes) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return {};
  const std::uint64_t machine = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  if (bytes <= machine) return {};
  return Fail(
      StatusCode::kOutOfMemory,
      fmt::format("a tensor of {} is asked for, and the machine has {} of memory; write a smaller size",
                  BytesText(bytes), BytesText(machine)));
}

}  // namespace rewire::tools
