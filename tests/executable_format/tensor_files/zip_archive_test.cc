// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/zip_archive.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/executable_format/tensor_files/support.h"

namespace rewire {
namespace {

using test::Bytes;
using test::Folder;
using test::ReadText;
using test::Text;

const std::string kContent = "what an entry holds, holds, holds, holds, holds, holds, holds";

// The bytes of an archive with two entries.
std::string Archive(ZipMethod method, std::uint64_t zip64_from = 0xFFFFFFFF) {
  const Folder folder;
  const std::string path = folder / "a.zip";
  Result<AtomicFile> file = AtomicFile::Create(path);
  REQUIRE(file.has_value());
  ZipWriter writer(&*file, zip64_from);
  REQUIRE(writer.Add("first", Bytes(kContent).view, method).has_value());
  REQUIRE(writer.Add("empty", {}, method).has_value());
  REQUIRE(writer.Finish().has_value());
  REQUIRE(file->Commit().has_value());
  return ReadText(path);
}

std::string DirectoryError(const std::string& archive) {
  const Result<std::vector<ZipEntry>> read = ReadZipDirectory(Bytes(archive).view);
  return read ? "no error" : read.error().message();
}

// The first entry's content, or why there is none.
std::string First(const std::string& archive) {
  const SharedBytes bytes = Bytes(archive);
  const Result<std::vector<ZipEntry>> entries = ReadZipDirectory(bytes.view);
  if (!entries) return entries.error().message();
  REQUIRE(entries->size() == 2);
  const Result<SharedBytes> content = UnpackZipEntry(bytes.view, entries->front());
  return content ? Text(*content) : content.error().message();
}

// The archive with `value` at `offset` behind the first `mark`.
std::string With(std::string archive, const std::string& mark, std::size_t offset, const std::string& value) {
  const std::size_t at = archive.find(mark);
  REQUIRE(at != std::string::npos);
  return archive.replace(at + offset, value.size(), value);
}

const std::string kLocal = "PK\3\4";
const std::string kDirectory = "PK\1\2";
const std::string kEnd = "PK\5\6";
const std::string kZip64End = "PK\6\6";
const std::string kLocator = "PK\6\7";

TEST_CASE("zip: entries come back, in the short form and in that of zip64") {
  for (const ZipMethod method : {ZipMethod::kStored, ZipMethod::kDeflated}) {
    for (const std::uint64_t zip64_from : {0xFFFFFFFFULL, 60ULL, 0ULL}) {
      const std::string archive = Archive(method, zip64_from);
      INFO("method " << static_cast<int>(method) << ", zip64 from " << zip64_from);
      CHECK((archive.find(kZip64End) != std::string::npos) == (zip64_from != 0xFFFFFFFF));
      CHECK(First(archive) == kContent);
      const SharedBytes bytes = Bytes(archive);
      const auto entries = ReadZipDirectory(bytes.view);
      REQUIRE(entries.has_value());
      CHECK((*entries)[1].name == "empty");
      const Result<SharedBytes> empty = UnpackZipEntry(bytes.view, (*entries)[1]);
      REQUIRE(empty.has_value());
      CHECK(empty->view.empty());
    }
  }
}

TEST_CASE("zip: the end is found behind a comment, and is the one whose comment ends the archive") {
  const std::string archive = Archive(ZipMethod::kStored);
  CHECK(First(With(archive, kEnd, 20, "\5") + "hello") == kContent);
  CHECK(DirectoryError(archive + "hello") == "Not a zip archive");
  CHECK(First(With(archive, kEnd, 20, "\x1a") + kEnd + std::string(22, 'x')) == kContent);
  CHECK(DirectoryError("") == "Not a zip archive");
}

TEST_CASE("zip: a directory that does not lie in the archive is refused") {
  const std::string damaged = "the directory of the archive is damaged";
  const std::string archive = Archive(ZipMethod::kStored);
  CHECK(DirectoryError(With(archive, kDirectory, 0, "pk")) == damaged);
  CHECK(DirectoryError(With(archive, kDirectory, 28, "\xff\xff")) == damaged);  // the length of a name
  CHECK(DirectoryError(With(archive, kEnd, 8, std::string("\1\0\1\0", 4))) != "no error");
  CHECK(DirectoryError(With(archive, kEnd, 10, std::string("\3\0", 2))) == damaged);
  CHECK(DirectoryError(With(archive, kEnd, 10, std::string("\1\0", 2))) == damaged);
  CHECK(DirectoryError(With(archive, kEnd, 12, "\xf0\xff\xff\x7f")) == damaged);  // its size
  CHECK(DirectoryError(With(archive, kEnd, 16, "\xf0\xff\xff\x7f")) == damaged);  // its position
  CHECK(DirectoryError(With(archive, kEnd, 16, "\xff\xff\xff\xff")) == damaged);  // zip64 without its record
  const std::string large = Archive(ZipMethod::kStored, 0);
  CHECK(DirectoryError(With(large, kZip64End, 0, "pk")) == damaged);
  CHECK(DirectoryError(With(large, kLocator, 0, "pk")) == damaged);
  CHECK(DirectoryError(With(large, kLocator, 8, std::string(8, '\xff'))) == damaged);
  CHECK(DirectoryError(With(large, kZip64End, 32, std::string(8, '\xff'))) ==
        damaged);  // more than any file has
}

TEST_CASE("zip: what an entry's header and the directory say is compared with the bytes") {
  const std::string early = "its header is damaged, or it ends early";
  const std::string differs = "it is damaged: its checksum or size differs";
  const std::string wrong = "its size in the archive's directory is wrong";
  const std::string stored = Archive(ZipMethod::kStored);
  const std::string deflated = Archive(ZipMethod::kDeflated);
  CHECK(First(With(stored, kLocal, 0, "pk")) == early);
  CHECK(First(With(stored, kLocal, 28, "\xff\xff")) == early);              // the extra field's length
  CHECK(First(With(stored, kDirectory, 42, "\xf0\xff\xff\x7f")) == early);  // the header's position
  CHECK(First(With(stored, kDirectory, 16, "\1\2\3\4")) == differs);        // the checksum
  CHECK(First(With(stored, kDirectory, 24, "\1")) == wrong);
  CHECK(First(With(deflated, kDirectory, 24, "\xff\xff\xff\x7f")) == wrong);
  CHECK(First(With(deflated, kDirectory, 24, "\1")) == differs);    // the stream gives more
  CHECK(First(With(deflated, kDirectory, 24, "\xff")) == differs);  // and less
  CHECK(First(With(deflated, kDirectory, 20, "\x40")) == differs);  // bytes behind the stream
  CHECK(First(With(stored, kDirectory, 8, "\1")) == "it is encrypted");
  CHECK(First(With(stored, kDirectory, 10, "\14")) ==
        "it is compressed by method 12; stored and deflated entries are read");
}

TEST_CASE("zip: a name has at most 65,535 bytes") {
  const Folder folder;
  Result<AtomicFile> file = AtomicFile::Create(folder / "a.zip");
  REQUIRE(file.has_value());
  ZipWriter writer(&*file);
  const Status added = writer.Add(std::string(65'536, 'x'), {}, ZipMethod::kStored);
  REQUIRE_FALSE(added.has_value());
  CHECK(added.error().message() == "its name is too long for a zip archive");
}

}  // namespace
}  // namespace rewire
