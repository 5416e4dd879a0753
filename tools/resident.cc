// SPDX-License-Identifier: Apache-2.0
#include "tools/resident.h"

#include <fstream>
#include <sstream>
#include <string>

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

}  // namespace rewire::tools
