// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/stage_progress.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>

namespace rewire::tools {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string ContentsOf(std::FILE* file) {
  std::rewind(file);
  std::array<char, 4096> text;
  return std::string(text.data(), std::fread(text.data(), 1, text.size(), file));
}

TEST_CASE("what takes long shows, and is cleared at the end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::string text;
  const auto read_more = [&] {
    std::array<char, 256> part;
    const ssize_t size = read(ends[0], part.data(), part.size());
    if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
    return size > 0;
  };
  {
    const File file(fdopen(ends[1], "w"));
    StageProgress progress(file.get(), milliseconds(0), milliseconds(1));
    progress.Begin("lowering");
    progress.Begin("packing weights");
    while (text.find("\rpacking weights, ") == std::string::npos) REQUIRE(read_more());
  }
  while (read_more()) continue;
  close(ends[0]);
  CHECK_THAT(text, Catch::EndsWith(" s\033[K\r\033[K"));
}

TEST_CASE("what is done soon does not show, and without a terminal nothing does") {
  const File file(std::tmpfile());
  REQUIRE(file != nullptr);
  {
    StageProgress progress(file.get(), hours(1), milliseconds(1));
    progress.Begin("lowering");
  }
  CHECK(ContentsOf(file.get()).empty());
  StageProgress nowhere(nullptr, milliseconds(0), milliseconds(1));
  nowhere.Begin("lowering");
}

}  // namespace
}  // namespace rewire::tools
