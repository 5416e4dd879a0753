// SPDX-License-Identifier: Apache-2.0
// Who else could have written what is kept in a folder, in every way that a file system has.
#include "rewire/base/standalone/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace rewire::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kSomebodyElse = 12345;
const std::string kKey = "device\noptions\nsource", kContent =
                                                        "\x7F"
                                                        "ELF code";

// A folder in a new one, both of the user's alone. Both are removed.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (fs::temp_directory_path() / "rewire_private_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    parent_ = pattern;
    REQUIRE(mkdir(path().c_str(), 0700) == 0);
  }
  ~TestFolder() { fs::remove_all(parent_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  fs::path parent() const { return parent_; }
  fs::path path() const { return parent_ / "kept"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path())) found.push_back(entry.path());
    return found;
  }
  fs::path OnlyFile() const {
    REQUIRE(files().size() == 1);
    return files()[0];
  }

 private:
  fs::path parent_;
};

std::string Kept(const TestFolder& folder) { return PrivateFolder(folder.path()).Read(kKey); }
bool Keep(const TestFolder& folder, const std::string& content = kContent) {
  return PrivateFolder(folder.path()).Write(kKey, content);
}

std::string TextOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("a private folder gives back what was kept, for the whole key") {
  const TestFolder folder;
  const PrivateFolder opened(folder.path());
  REQUIRE(opened.is_open());
  CHECK(opened.Read(kKey).empty());
  CHECK(opened.Write(kKey, "older"));
  CHECK(opened.Write(kKey, kContent));
  CHECK(opened.Read(kKey) == kContent);
  CHECK(opened.Read(kKey + "x").empty());
  // The name is a hash, so another key may have the same: here its file is put in place of the other's.
  const fs::path file = folder.OnlyFile();
  const std::string first = TextOf(file);
  fs::remove(file);
  REQUIRE(opened.Write("another key", kContent));
  fs::rename(folder.OnlyFile(), file);
  CHECK(opened.Read(kKey).empty());
  struct stat info {};
  CHECK(opened.Write(kKey, kContent));
  CHECK(TextOf(file) == first);
  REQUIRE(stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE(
    "a file of a private folder is opened by its name, and its path leads into the folder that was checked") {
  const TestFolder folder;
  const PrivateFolder opened(folder.path());
  REQUIRE(opened.is_open());
  CHECK_FALSE(opened.OpenFile("file").is_open());
  fs::rename(folder.path(), folder.parent() / "moved");
  std::ofstream(opened.PathOf("file")) << "content";
  CHECK(TextOf(folder.parent() / "moved" / "file") == "content");
  REQUIRE(chmod(opened.PathOf("file").c_str(), 0600) == 0);
  CHECK(opened.OpenFile("file").is_open());
  REQUIRE(chmod(opened.PathOf("file").c_str(), 0620) == 0);
  CHECK_FALSE(opened.OpenFile("file").is_open());
  CHECK_FALSE(PrivateFolder("").OpenFile("file").is_open());
}

TEST_CASE("a private folder is one that only its owner can write, whatever the mode") {
  const TestFolder folder;
  REQUIRE(Keep(folder));
  for (mode_t mode = 0; mode <= 07777; ++mode) {
    if ((mode & 0500) != 0500) continue;
    REQUIRE(chmod(folder.path().c_str(), mode) == 0);
    const PrivateFolder opened(folder.path());
    const bool is_private = (mode & 022) == 0;
    if (opened.is_open() != is_private) FAIL("mode " << std::oct << mode);
    if (opened.Read(kKey).empty() == is_private) FAIL("mode " << std::oct << mode);
    if (!is_private && (std::string_view(opened.reason()) != "others than its owner can write it" ||
                        opened.Write(kKey, "x")))
      FAIL("mode " << std::oct << mode);
  }
  REQUIRE(chmod(folder.path().c_str(), 0700) == 0);
}

TEST_CASE("a kept file is one that only its owner can write, whatever the mode") {
  const TestFolder folder;
  REQUIRE(Keep(folder));
  for (mode_t mode = 0; mode <= 0777; ++mode) {
    if ((mode & 0400) == 0) continue;
    REQUIRE(chmod(folder.OnlyFile().c_str(), mode) == 0);
    if (Kept(folder).empty() == ((mode & 022) == 0)) FAIL("mode " << std::oct << mode);
  }
}

TEST_CASE("a folder and a file of somebody else are not taken") {
  if (geteuid() != 0) {
    WARN("skipped: only root can give a file to somebody else");
    return;
  }
  const TestFolder folder;
  REQUIRE(Keep(folder));
  REQUIRE(chown(folder.OnlyFile().c_str(), kSomebodyElse, 0) == 0);
  CHECK(Kept(folder).empty());
  // It is replaced, not written.
  CHECK(Keep(folder));
  CHECK(Kept(folder) == kContent);
  REQUIRE(chown(folder.path().c_str(), kSomebodyElse, 0) == 0);
  const PrivateFolder opened(folder.path());
  CHECK_FALSE(opened.is_open());
  CHECK(std::string_view(opened.reason()) == "it belongs to another user");
  CHECK(opened.Read(kKey).empty());
  CHECK_FALSE(opened.Write(kKey, kContent));
}

TEST_CASE("nothing is read or written by way of a link") {
  const TestFolder folder;
  REQUIRE(Keep(folder));
  const fs::path file = folder.OnlyFile(), elsewhere = folder.parent() / "elsewhere";
  const std::string text = TextOf(file);
  // A link in place of the file, a second name of it, and things that are no files.
  const std::vector<std::pair<const char*, std::function<void()>>> cases = {
      {"link", [&] { fs::create_symlink(elsewhere, file); }},
      {"second name", [&] { fs::create_hard_link(elsewhere, file); }},
      {"pipe", [&] { REQUIRE(mkfifo(file.c_str(), 0600) == 0); }},
      {"folder", [&] { fs::create_directory(file); }},
  };
  for (const auto& [what, make] : cases) {
    CAPTURE(what);
    std::ofstream(elsewhere, std::ios::binary) << text;
    fs::remove(file);
    make();
    CHECK(Kept(folder).empty());
    CHECK(Keep(folder) == (std::string(what) != "folder"));
    CHECK(TextOf(elsewhere) == text);
    if (std::string(what) != "folder") CHECK(Kept(folder) == kContent);
    fs::remove_all(elsewhere);
  }
  // The folder itself.
  const fs::path link = folder.parent() / "link";
  fs::create_directory_symlink(folder.path(), link);
  CHECK_FALSE(PrivateFolder(link).is_open());
  CHECK_FALSE(PrivateFolder(link / "").is_open());
}

// Somebody who can write the folder above may put another one in place of the path.
TEST_CASE("what was opened stays, whatever becomes of its path") {
  const TestFolder folder;
  const PrivateFolder opened(folder.path());
  const fs::path moved = folder.parent() / "moved";
  fs::rename(folder.path(), moved);
  fs::create_directory(folder.path());
  CHECK(opened.Write(kKey, kContent));
  CHECK(folder.files().empty());
  CHECK(opened.Read(kKey) == kContent);
}

TEST_CASE("a damaged file is as good as none, and is replaced") {
  const TestFolder folder;
  REQUIRE(Keep(folder));
  const fs::path file = folder.OnlyFile();
  const std::string text = TextOf(file);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    std::ofstream(file, std::ios::binary) << changed;
    if (!Kept(folder).empty()) FAIL("byte " << i << " was changed");
    std::ofstream(file, std::ios::binary) << text.substr(0, i);
    if (!Kept(folder).empty()) FAIL("the file ends at byte " << i);
  }
  std::ofstream(file, std::ios::binary) << text + "x";
  CHECK(Kept(folder).empty());
  CHECK(Keep(folder));
  CHECK(Kept(folder) == kContent);
}

TEST_CASE("drafts have names that cannot be foreseen, and none is left") {
  const TestFolder folder;
  const PrivateFolder opened(folder.path());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) (void)opened.Write(kKey, std::string(1000, static_cast<char>('a' + i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(folder.files().size() == 1);
  CHECK(opened.Read(kKey).size() == 1000);
}

TEST_CASE("a folder that is not there, no folder, and no name hold nothing") {
  const TestFolder folder;
  std::ofstream(folder.parent() / "file") << "text";
  for (const fs::path& path : {folder.parent() / "missing", folder.parent() / "file", fs::path()}) {
    const PrivateFolder opened(path);
    CHECK_FALSE(opened.is_open());
    CHECK(*opened.reason() != 0);
    CHECK(opened.Read(kKey).empty());
    CHECK_FALSE(opened.Write(kKey, kContent));
  }
}

}  // namespace
}  // namespace rewire::test
