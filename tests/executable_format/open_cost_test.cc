// SPDX-License-Identifier: Apache-2.0
// Opening a file with large constants must not read them. How long it takes is measured by `make bench-vm`.
#include <unistd.h>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kConstantBytes = std::size_t{64} << 20;

// KiB of a mapped file that are in this process's memory.
std::size_t ResidentKiB(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  bool ours = false;
  std::size_t total = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
      ours = line.find(path) != std::string::npos;
    if (!ours || line.rfind("Rss:", 0) != 0) continue;
    std::istringstream fields(line.substr(4));
    std::size_t kib = 0;
    fields >> kib;
    total += kib;
  }
  return total;
}

TEST_CASE("a file with a 64 MiB constant opens without reading it") {
  const fs::path path = fs::temp_directory_path() / ("rewire-open-cost-" + std::to_string(getpid()) + ".rwx");
  Module module = test::SampleModules()[1].module;
  module.constants.push_back(test::DataConstant("large", TensorType(kFloat32, {kConstantBytes / 4}),
                                                std::vector<float>(kConstantBytes / 4, 1.5F)));
  REQUIRE(WriteModule(module, path.string()));

  Result<Executable> executable = Executable::Open(path.string());
  REQUIRE(executable);
  // The kernel maps up to 64 KiB of cached pages around the one page that is read.
  CHECK(ResidentKiB(path.string()) <= 64);
  CHECK(ResidentKiB(path.string()) > 0);
  fs::remove(path);
}

}  // namespace
}  // namespace rewire
