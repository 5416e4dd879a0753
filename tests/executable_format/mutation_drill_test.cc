// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/mutation_drill.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>

#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/sample_modules.h"
#include "rewire/tests/support/paths.h"

namespace rewire {
namespace {

namespace fs = std::filesystem;

// The kept files of every version: executables, or bundles of them.
std::vector<fs::path> SampleFiles(bool bundles = false) {
  std::vector<fs::path> files;
  const fs::path folder = fs::path(test::SourceDir()) / "tests/executable_format/samples";
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".rwx") continue;
    const Result<SharedBytes> file = ReadFile(entry.path().string());
    REQUIRE(file);
    if (IsBundle(file->view) == bundles) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("no mutant of a sample file crashes, and none with its old checksums is accepted") {
  test::DrillReport total;
  for (const fs::path& path : SampleFiles()) {
    CAPTURE(path.string());
    Result<SharedBytes> file = ReadFile(path.string());
    REQUIRE(file);
    const test::DrillReport report = test::RunMutationDrill(file->view, [](const test::Mutant& mutant) {
      if (!mutant.recomputed) FAIL_CHECK("accepted: " << mutant.what);
    });
    total.plain += report.plain;
    total.recomputed += report.recomputed;
  }
  std::printf("drill, checksums as they were: %s\n", total.plain.Text().c_str());
  std::printf("drill, checksums recomputed:   %s\n", total.recomputed.Text().c_str());
  CHECK(total.plain.mutants == total.recomputed.mutants);
  // Enough must get deep to test what lies there.
  CHECK(total.recomputed.past_reader * 5 >= total.recomputed.mutants);
  CHECK(total.recomputed.past_verifier > 0);
}

TEST_CASE("recomputing leaves a good file as it is") {
  for (const test::SampleModule& sample : test::SampleModules()) {
    const std::vector<std::byte> good = *SerializeModule(sample.module);
    std::vector<std::byte> same = good;
    test::RecomputeChecksums(same);
    CHECK(same == good);
  }
}

TEST_CASE("every kept sample file opens") {
  const std::vector<fs::path> files = SampleFiles();
  CHECK(files.size() >= test::SampleModules().size());
  OpenOptions options;
  options.verify_data = true;
  for (const fs::path& path : files) {
    CAPTURE(path.string());
    Result<Executable> executable = Executable::Open(path.string(), options);
    if (!executable) FAIL_CHECK(executable.error().message());
  }
}

TEST_CASE("every kept bundle opens") {
  const std::vector<fs::path> files = SampleFiles(true);
  CHECK_FALSE(files.empty());
  OpenOptions options;
  options.verify_data = true;
  for (const fs::path& path : files) {
    CAPTURE(path.string());
    const auto bundle = OpenBundle(path.string(), options);
    if (!bundle) FAIL_CHECK(bundle.error().message());
  }
}

// The content of version 1's files is known: a reader that takes a field for another is found by this.
TEST_CASE("version 1's sample files say what they said") {
  for (const test::SampleModule& sample : test::SampleModules()) {
    CAPTURE(sample.name);
    const std::string path =
        std::string(test::SourceDir()) + "/tests/executable_format/samples/v1/" + sample.name + ".rwx";
    Result<SharedBytes> file = ReadFile(path);
    REQUIRE(file);
    Result<Module> module = ReadModule(*file);
    REQUIRE(module);
    CHECK(*SerializeModule(*module) == *SerializeModule(sample.module));
  }
}

TEST_CASE("version 1's bundle says what it said") {
  const auto bundle =
      OpenBundle(std::string(test::SourceDir()) + "/tests/executable_format/samples/v1/bundle.rwx");
  if (!bundle) FAIL(bundle.error().message());
  std::vector<std::string> names;
  for (const BundledExecutable& model : *bundle) names.push_back(model.name);
  CHECK(names ==
        std::vector<std::string>{"identity", "add_constant", "control", "shapes", "compressed", "again"});
  for (const BundledExecutable& sample : test::SampleBundle()) {
    CAPTURE(sample.name);
    const Result<Executable> kept = FindExecutable(*bundle, sample.name);
    REQUIRE(kept);
    CHECK(*SerializeModule(kept->module()) == *SerializeModule(sample.executable.module()));
  }
}

}  // namespace
}  // namespace rewire
