// SPDX-License-Identifier: Apache-2.0
// The log says why compiled code is not kept in the folder of REWIRE_DEVICE_CACHE.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rewire_log_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The lines about the folder when a program is linked, on a device or without one.
std::vector<std::string> LoggedOf(const std::string& folder, bool on_device) {
  FakeDevice device;
  std::vector<std::string> logged;
  LinkOptions options = WithKernels(device);
  options.log.context = &logged;
  options.log.write = [](void* context, const char* message, std::size_t size) {
    const std::string text(message, size);
    if (text.starts_with("REWIRE_DEVICE_CACHE"))
      static_cast<std::vector<std::string>*>(context)->push_back(text);
  };
  setenv("REWIRE_DEVICE_CACHE", folder.c_str(), 1);
  (void)ProgramOf(on_device ? kChain : ".func main(x: f32[3]) -> f32[3]\n  ret %x\n.end\n",
                  std::move(options));
  unsetenv("REWIRE_DEVICE_CACHE");
  return logged;
}

TEST_CASE("linking logs why the folder of compiled device code is not used") {
  const TestFolder made;
  const std::filesystem::path folder = made.path() / "kept";
  std::filesystem::create_directory(folder);
  std::filesystem::create_directory_symlink(folder, made.path() / "link");
  std::ofstream(made.path() / "file") << "x";
  const auto said = [](const std::filesystem::path& path, const std::string& why) {
    return std::vector<std::string>{"REWIRE_DEVICE_CACHE: no compiled code is kept in '" + path.string() +
                                    "', because " + why};
  };
  using std::filesystem::perms;
  std::filesystem::permissions(folder, perms::owner_all);
  CHECK(LoggedOf(folder.string(), true).empty());
  CHECK(LoggedOf("", true).empty());
  for (const perms others : {perms::group_write, perms::others_write}) {
    std::filesystem::permissions(folder, perms::owner_all | others);
    CHECK(LoggedOf(folder.string(), true) == said(folder, "others than its owner can write it"));
    CHECK(LoggedOf(folder.string(), false).empty());
  }
  for (const char* name : {"link", "file"})
    CHECK(LoggedOf((made.path() / name).string(), true) ==
          said(made.path() / name, "it is no folder, or a link"));
  CHECK(LoggedOf((made.path() / "none").string(), true) ==
        said(made.path() / "none", "there is no such folder"));
}

}  // namespace
}  // namespace rewire::test
