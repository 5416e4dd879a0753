// SPDX-License-Identifier: Apache-2.0
#include "executable_format/executable.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/hash.h"
#include "executable_format/writer.h"
#include "tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

namespace fs = std::filesystem;

class TemporaryFile {
 public:
  TemporaryFile() {
    std::string pattern = (fs::temp_directory_path() / "rewire-executable-XXXXXX").string();
    const int descriptor = mkstemp(pattern.data());
    REQUIRE(descriptor >= 0);
    close(descriptor);
    path = pattern;
  }
  ~TemporaryFile() { fs::remove(path); }
  std::string path;
};

TEST_CASE("every sample opens, mapped, copied and from memory") {
  for (const test::SampleModule& sample : test::SampleModules()) {
    CAPTURE(sample.name);
    TemporaryFile file;
    REQUIRE(WriteModule(sample.module, file.path));
    OpenOptions options;
    options.verify_data = true;
    for (bool copy : {false, true}) {
      options.copy = copy;
      Result<Executable> opened = Executable::Open(file.path, options);
      if (!opened) FAIL(opened.error().message());
      CHECK(opened->module().functions.size() == sample.module.functions.size());
      CHECK(opened->FindFunction("main") == sample.module.functions.size() - 1);
      CHECK_FALSE(opened->FindFunction("mai"));
    }
    Result<Executable> made = Executable::FromModule(sample.module);
    if (!made) FAIL(made.error().message());
    for (const Constant& constant : made->module().constants) {
      CHECK(constant.checksum == Hash64(constant.stored.view));
    }
    CHECK(*made == Executable(*made));
    CHECK_FALSE(*made == *Executable::FromModule(sample.module));
  }
}

TEST_CASE("an error of opening starts with the path") {
  TemporaryFile file;
  Result<Executable> opened = Executable::Open(file.path);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code() == StatusCode::kInvalidFile);
  CHECK(opened.error().message() ==
        file.path + ": this is not a Rewire executable: it does not start with the bytes 89 'RWX' of one");
  fs::remove(file.path);
  CHECK(Executable::Open(file.path).error().code() == StatusCode::kNotFound);
}

TEST_CASE("constants keep the file's bytes alive") {
  TemporaryFile file;
  REQUIRE(WriteModule(test::SampleModules()[1].module, file.path));
  Constant constant;
  {
    Result<Executable> opened = Executable::Open(file.path);
    REQUIRE(opened);
    constant = opened->module().constants[0];
  }
  CHECK(Hash64(constant.stored.view) == constant.checksum);
}

}  // namespace
}  // namespace rewire
