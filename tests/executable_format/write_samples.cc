// SPDX-License-Identifier: Apache-2.0
// write_samples FOLDER: writes the sample modules as files, each by itself and all in a bundle, for the first
// commit of a format version's samples. Files that are there are kept: they are the promise to load them for
// ever.
#include <cstdio>
#include <filesystem>

#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/sample_modules.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_samples FOLDER\n");
    return 2;
  }
  for (const rewire::test::SampleModule& sample : rewire::test::SampleModules()) {
    const std::filesystem::path path = std::filesystem::path(argv[1]) / (sample.name + ".rwx");
    if (std::filesystem::exists(path)) continue;
    rewire::Status written = rewire::WriteModule(sample.module, path.string());
    if (!written) {
      std::fprintf(stderr, "write_samples: %s\n", written.error().what());
      return 1;
    }
  }
  const std::filesystem::path path = std::filesystem::path(argv[1]) / "bundle.rwx";
  if (std::filesystem::exists(path)) return 0;
  rewire::Status written = rewire::WriteBundle(rewire::test::SampleBundle(), path.string());
  if (!written) {
    std::fprintf(stderr, "write_samples: %s\n", written.error().what());
    return 1;
  }
  return 0;
}
