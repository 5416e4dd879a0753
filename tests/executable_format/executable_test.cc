// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/executable.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "rewire/base/hash.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/sample_modules.h"

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

// The constants' bytes as they are used: where the file's bytes are, or in a copy of them.
TEST_CASE("memory is used where it lies when it is aligned, and copied when it is not or on demand") {
  const Module sample = test::SampleModules()[1].module;
  const Result<std::vector<std::byte>> file = SerializeModule(sample);
  REQUIRE(file);
  const std::size_t room = file->size() + 2 * kDataAlignment;
  struct Case {
    std::size_t offset;
    bool copy;
    bool copied;
  };
  for (const Case& tried :
       {Case{0, false, false}, Case{0, true, true}, Case{1, false, true}, Case{16, false, true}}) {
    CAPTURE(tried.offset, tried.copy);
    auto memory = std::make_shared<std::vector<std::byte>>(room);
    const std::size_t to_boundary = -reinterpret_cast<std::uintptr_t>(memory->data()) % kDataAlignment;
    std::byte* start = memory->data() + to_boundary + tried.offset;
    std::copy(file->begin(), file->end(), start);
    OpenOptions options;
    options.copy = tried.copy;
    const Result<Executable> opened = Executable::FromBytes({{start, file->size()}, memory}, options);
    REQUIRE(opened);
    CHECK((memory.use_count() == 1) == tried.copied);
    std::fill(memory->begin(), memory->end(), tried.copied ? std::byte{0xFF} : std::byte{});
    REQUIRE_FALSE(opened->module().constants.empty());
    for (const Constant& constant : opened->module().constants) {
      const Span<const std::byte> stored = constant.stored.view;
      CHECK(reinterpret_cast<std::uintptr_t>(stored.data()) % kDataAlignment == 0);
      CHECK((Hash64(stored) == constant.checksum) == tried.copied);
    }
  }
}

}  // namespace
}  // namespace rewire
