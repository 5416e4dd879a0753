// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "rewire/base/atomic_file.h"
#include "rewire/base/files/file_identity.h"
#include "rewire/base/mapped_file.h"
#include "rewire/base/touched_files.h"
#include "rewire/base/unfinished_files.h"

namespace rewire {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "rewire-files-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

Span<const std::byte> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
std::string Text(Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_CASE("a file written atomically reads back, mapped and copied") {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  REQUIRE(WriteFileAtomically(path, Bytes("first")));
  REQUIRE(WriteFileAtomically(path, Bytes("second, longer")));
  CHECK(folder.file_count() == 1);
  CHECK(Text(MapFile(path)->view) == "second, longer");
  Result<SharedBytes> copy = ReadFile(path);
  REQUIRE(copy);
  CHECK(Text(copy->view) == "second, longer");
  CHECK(reinterpret_cast<std::uintptr_t>(copy->view.data()) % 64 == 0);
}

TEST_CASE("a mapping outlives its file's name") {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  REQUIRE(WriteFileAtomically(path, Bytes("content")));
  Result<SharedBytes> mapped = MapFile(path);
  REQUIRE(mapped);
  fs::remove(path);
  CHECK(Text(mapped->view) == "content");
}

TEST_CASE("bytes of a mapped file say when MapFile found the file changed last") {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  REQUIRE(WriteFileAtomically(path, Bytes("content")));
  const Result<SharedBytes> mapped = MapFile(path);
  REQUIRE(mapped);
  struct stat before;
  struct stat after;
  REQUIRE(stat(path.c_str(), &before) == 0);
  const std::int64_t changed = MappedFileChanged(mapped->view);
  CHECK(changed == before.st_ctim.tv_sec * std::int64_t{1'000'000'000} + before.st_ctim.tv_nsec);
  CHECK(MappedFileChanged(mapped->view.subspan(3)) == changed);
  CHECK(MapFile(path)->view.data() == mapped->view.data());
  CHECK(MappedFileChanged(mapped->view) == changed);
  // Written in place, and mapped again where it was.
  do {
    std::FILE* file = std::fopen(path.c_str(), "r+");
    REQUIRE(file != nullptr);
    CHECK(std::fputs("CONTENT", file) >= 0);
    REQUIRE(std::fclose(file) == 0);
    REQUIRE(stat(path.c_str(), &after) == 0);
  } while (before.st_ctim.tv_sec == after.st_ctim.tv_sec && before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
  CHECK(MapFile(path)->view.data() == mapped->view.data());
  CHECK(MappedFileChanged(mapped->view) > changed);
  const std::string own = "content";
  CHECK(MappedFileChanged(Bytes(own)) == kNotMapped);
}

TEST_CASE("touching a page that a mapped file has lost raises SIGBUS") {
  TemporaryFolder folder;
  const std::string path = folder / "shrunk";
  REQUIRE(WriteFileAtomically(path, Bytes(std::string(1 << 16, 'x'))));
  const Result<SharedBytes> mapped = MapFile(path);
  REQUIRE(mapped);
  REQUIRE(truncate(path.c_str(), 0) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGBUS, SIG_DFL);
    const volatile std::byte first = mapped->view[0];
    _exit(first == std::byte{0} ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGBUS);
}

TEST_CASE("an empty file is empty bytes") {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  REQUIRE(WriteFileAtomically(path, {}));
  CHECK(MapFile(path)->view.empty());
  CHECK(ReadFile(path)->view.empty());
}

TEST_CASE("a file is mapped without links only if no part of its path is one") {
  TemporaryFolder made;
  const fs::path root = fs::canonical(made / "");
  fs::create_directories(root / "a/b");
  REQUIRE(WriteFileAtomically(root / "a/b/file", Bytes("content")));
  fs::create_directory_symlink(root / "a", root / "link");
  fs::create_symlink(root / "a/b/file", root / "a/b/file_link");
  const auto map = [](const fs::path& path) { return MapFileWithoutLinks(path, "named"); };
  CHECK(Text(map(root / "a/b/file")->view) == "content");
  // Both parts that are links, and what a path that was judged may have become.
  for (const char* name : {"link/b/file", "a/b/file_link", "link"}) {
    CAPTURE(name);
    const Result<SharedBytes> mapped = map(root / name);
    REQUIRE_FALSE(mapped);
    CHECK(mapped.error().message().find("'named': ") != std::string::npos);
  }
  CHECK(map(root / "a/none").error().code() == StatusCode::kNotFound);
  CHECK_FALSE(map(root / "a/b"));
  CHECK_FALSE(map("/"));
}

TEST_CASE("a pipe is read to its end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const std::string content(40000, 'x');
  REQUIRE(write(ends[1], content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  CHECK(Text(ReadFile(path)->view) == content);
  close(ends[0]);
}

TEST_CASE("a named pipe without a writer ends at once, and is not mapped") {
  TemporaryFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(ReadFile(path)->view.empty());
  const Result<SharedBytes> mapped = MapFile(path);
  REQUIRE_FALSE(mapped);
  CHECK(mapped.error().message() ==
        "cannot map '" + path + "': it is a device or a pipe, a file is expected");
}

TEST_CASE("a link to a file stays, and the file is written") {
  TemporaryFolder folder;
  const std::string path = folder / "file", link = folder / "link", dangling = folder / "dangling";
  REQUIRE(WriteFileAtomically(path, Bytes("old")));
  fs::create_symlink(path, link);
  fs::create_symlink(folder / "none", dangling);
  REQUIRE(WriteFileAtomically(link, Bytes("new")));
  CHECK(fs::is_symlink(link));
  CHECK(Text(ReadFile(path)->view) == "new");
  // There is no file to write, so the link gives way.
  REQUIRE(WriteFileAtomically(dangling, Bytes("new")));
  CHECK_FALSE(fs::is_symlink(dangling));
}

// Runs in a process of its own, for the memory never ends; gives what it returns.
template <typename Work>
std::string InAnotherProcess(const Work& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string answer = work();
    (void)!write(ends[1], answer.data(), answer.size());
    _exit(0);
  }
  close(ends[1]);
  std::string answer(Text(ReadFile("/dev/fd/" + std::to_string(ends[0]))->view));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return answer;
}

TEST_CASE("a program that remembers its files writes over none of them") {
  TemporaryFolder folder;
  const std::string path = folder / "file", link = folder / "link", other = folder / "other";
  const std::string second = folder / "second";
  REQUIRE(WriteFileAtomically(path, Bytes("content")));
  REQUIRE(WriteFileAtomically(second, Bytes("content")));
  fs::create_hard_link(path, link);
  const std::string answer = InAnotherProcess([&] {
    RememberTouchedFiles();
    std::string text;
    const auto write = [&](const std::string& to) {
      const Status written = WriteFileAtomically(to, Bytes("new"));
      text += (written ? "written" : written.error().message()) + "\n";
    };
    // Read between its making and its end.
    Result<AtomicFile> begun = AtomicFile::Create(path);
    (void)MapFile(path);
    text += begun->Commit() ? "" : "not committed\n";
    write(link);
    (void)MapFile(second);
    write(second);
    write(other);
    write(other);
    return text;
  });
  CHECK(answer == "not committed\nthe output '" + link + "' is the file '" + path +
                      "', which was read as an input; name another output\nthe output '" + second +
                      "' is the file '" + second +
                      "', which was read as an input; name another output\nwritten\nthe output '" + other +
                      "' is the file '" + other + "', which was written just before; name another output\n");
  CHECK(Text(ReadFile(path)->view) == "content");
  CHECK(folder.file_count() == 4);
}

TEST_CASE("an uncommitted file leaves the old one and nothing else") {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  REQUIRE(WriteFileAtomically(path, Bytes("old")));
  {
    Result<AtomicFile> file = AtomicFile::Create(path);
    REQUIRE(file);
    REQUIRE(file->Write(Bytes("new")));
    CHECK(folder.file_count() == 2);
  }
  CHECK(folder.file_count() == 1);
  CHECK(Text(ReadFile(path)->view) == "old");
}

TEST_CASE("a signal handler can remove what is unfinished, and nothing else") {
  TemporaryFolder folder;
  REQUIRE(WriteFileAtomically(folder / "kept", Bytes("whole")));
  Result<AtomicFile> unfinished = AtomicFile::Create(folder / "kept");
  Result<AtomicFile> committed = AtomicFile::Create(folder / "other");
  REQUIRE(unfinished);
  REQUIRE(committed);
  REQUIRE(committed->Commit());
  { const Result<AtomicFile> abandoned = AtomicFile::Create(folder / "third"); }
  CHECK(folder.file_count() == 3);
  RemoveUnfinishedFiles();
  CHECK(folder.file_count() == 2);
  CHECK(Text(MapFile(folder / "kept")->view) == "whole");
  CHECK(!unfinished->Commit());
}

TEST_CASE("file errors name path and reason") {
  TemporaryFolder folder;
  const std::string missing = folder / "missing";
  for (const Result<SharedBytes>& result : {MapFile(missing), ReadFile(missing)}) {
    REQUIRE_FALSE(result);
    CHECK(result.error().code() == StatusCode::kNotFound);
    CHECK(result.error().message() == "cannot open '" + missing + "': No such file or directory");
  }
  Result<SharedBytes> directory = ReadFile(folder / ".");
  REQUIRE_FALSE(directory);
  CHECK(directory.error().code() == StatusCode::kIo);
  CHECK(directory.error().message() == "cannot read '" + (folder / ".") + "': Is a directory");

  Status nowhere = WriteFileAtomically(missing + "/file", Bytes("x"));
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message() == "cannot write '" + missing + "/file': No such file or directory");
}

TEST_CASE("a full disk is an error with path and reason") {
  Status status = WriteFileAtomically("/dev/full", Bytes("x"));
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kIo);
  CHECK(status.error().message() == "cannot write '/dev/full': No space left on device");
}

TEST_CASE("a device is written, and has no size that could be mapped") {
  Result<AtomicFile> device = AtomicFile::Create("/dev/null");
  REQUIRE(device);
  CHECK(device->Write(Bytes("x")));
  const Result<std::byte*> mapped = device->Map(16);
  REQUIRE_FALSE(mapped);
  CHECK(mapped.error().message() == "'/dev/null' is no regular file");
}

TEST_CASE("a written file has the umask's mode") {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  const mode_t old = umask(022);
  REQUIRE(WriteFileAtomically(path, Bytes("x")));
  umask(old);
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0644);
}

TEST_CASE("a file is the same until it is written or replaced") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  REQUIRE(WriteFileAtomically(path, Bytes("content")));
  const auto first = IdentityOf(path);
  REQUIRE(first);
  CHECK(first->size == 7);
  CHECK_FALSE(first->settled);
  CHECK(first->changed >= first->modified);
  CHECK(first->modified <= WallTime());
  CHECK(*IdentityOf(path) == *first);
  REQUIRE(WriteFileAtomically(path, Bytes("changed")));
  CHECK(*IdentityOf(path) != *first);
  CHECK_FALSE(IdentityOf(folder / "gone"));
  CHECK(errno == ENOENT);
  CHECK_FALSE(IdentityOf(folder / ""));
  CHECK(errno == EISDIR);
}

}  // namespace
}  // namespace rewire
