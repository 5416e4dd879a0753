// SPDX-License-Identifier: Apache-2.0
// Models of ONNX, whose executables are kept in a folder.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/kept_log.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/tests/support/paths.h"

namespace rewire::serve::test {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// A server of digits.onnx with a cache, which is started over and over.
class CachedModel {
 public:
  CachedModel() {
    fs::copy_file(fs::path(rewire::test::SourceDir()) / "examples/digits/digits.onnx", model());
  }
  fs::path model() const { return folder_.path() / "digits.onnx"; }
  fs::path cache() const { return folder_.path() / "cache"; }
  // Returns what the server logs about its start.
  std::string Start() {
    KeptLog log;
    ServeSettings settings = SettingsOf(model().string());
    settings.cache = cache().string();
    const Result<std::unique_ptr<Service>> service = MakeService(settings, {{}, {}, &log});
    if (!service) return service.error().message();
    const Result<ModelDescription> description = (*service)->Describe("digits", "");
    CHECK(description);
    if (description) CHECK(description->platform == "rewire_onnx");
    return log.TakeText();
  }
  std::vector<fs::path> Entries() const {
    std::vector<fs::path> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(cache())) {
      if (entry.path().extension() == ".rwx") entries.push_back(entry.path());
    }
    return entries;
  }

 private:
  rewire::test::TempFolder folder_;
};

constexpr char kCompiled[] = "model digits, version 1: ready, compiled in ";
constexpr char kFound[] = "model digits, version 1: ready, found in the cache\n";

TEST_CASE("a model of ONNX is compiled at the first start, and found in the cache at the next ones") {
  CachedModel model;
  CHECK_THAT(model.Start(), Contains(kCompiled));
  REQUIRE(model.Entries().size() == 1);
  const auto written = fs::last_write_time(model.Entries()[0]);
  CHECK(model.Start() == kFound);
  CHECK(model.Start() == kFound);
  CHECK(fs::last_write_time(model.Entries()[0]) == written);
}

TEST_CASE("a damaged entry of the cache is compiled anew") {
  CachedModel model;
  CHECK_THAT(model.Start(), Contains(kCompiled));
  const fs::path entry = model.Entries().at(0);
  std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(entry) / 2);
  file.seekg(middle);
  const int byte = file.get();
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 0x55));
  file.close();
  CHECK_THAT(model.Start(), Contains(kCompiled));
  CHECK(model.Start() == kFound);
  fs::resize_file(entry, 10);
  CHECK_THAT(model.Start(), Contains(kCompiled));
  CHECK(model.Start() == kFound);
}

TEST_CASE("a model of ONNX that has changed has an entry of its own") {
  CachedModel model;
  CHECK_THAT(model.Start(), Contains(kCompiled));
  fs::copy_file(fs::path(rewire::test::SourceDir()) / "tests/packaging/first_screen.onnx", model.model(),
                fs::copy_options::overwrite_existing);
  CHECK_THAT(model.Start(), Contains(kCompiled));
  CHECK(model.Entries().size() == 2);
  CHECK(model.Start() == kFound);
}

TEST_CASE("a cache that others may write is not used, and the model is served all the same") {
  CachedModel model;
  fs::create_directory(model.cache());
  fs::permissions(model.cache(), fs::perms::all);
  const std::string text = model.Start();
  CHECK_THAT(text, Contains(kCompiled));
  CHECK_THAT(text, Contains("the cache '" + model.cache().string() + "' is not used: "));
  CHECK(model.Entries().empty());
}

}  // namespace
}  // namespace rewire::serve::test
