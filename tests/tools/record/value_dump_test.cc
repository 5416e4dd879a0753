// SPDX-License-Identifier: Apache-2.0
// vm-run --dump-values: the values of a run as files, with an index.
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using nlohmann::json;
using test::Finished;

// The sum is overwritten in place; the second kernel returns a tree.
constexpr const char kDumped[] = R"(
.kernel sum = "rewire.add"
.kernel twice = "rewire.add" in_place
.func main(x: f32[2]) -> y: f32[2]
  %storage = alloc_storage _, alignment=64, f32[2], cpu
  %sum = alloc_tensor %storage, _, f32[2]
  invoke_packed sum(%x, %x, %sum), outputs=1 @ "Add 'first/sum'"
  invoke_packed twice(%sum, %sum, %sum), outputs=1
  ret %sum
.end
.func fails(x: f32[2]) -> y: f32[3]
  %storage = alloc_storage _, alignment=64, f32[4], cpu
  %sum = alloc_tensor %storage, _, f32[2]
  invoke_packed sum(%x, %x, %sum), outputs=1
  %wrong = alloc_tensor %storage, _, f32[3]
  invoke_packed sum(%x, %x, %wrong), outputs=1
  ret %wrong
.end
)";

class DumpSession {
 public:
  DumpSession() { folder_.Write("model.asm", kDumped); }
  Finished Run(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"model.asm", "-i", "x=2xf32=1,2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::RunProgram("vm-run", arguments, folder_.path());
  }
  std::string Elements(const std::string& file) const {
    const Result<HostTensor> tensor = ReadNpy((folder_.path() / file).string());
    REQUIRE(tensor.has_value());
    const auto* floats = reinterpret_cast<const float*>(tensor->bytes.view.data());
    std::string text;
    for (std::size_t i = 0; i < tensor->bytes.view.size() / sizeof(float); ++i)
      text += std::to_string(static_cast<int>(floats[i])) + " ";
    return text;
  }
  json Index(const std::string& folder) const {
    return json::parse(test::ReadWholeFile(folder_.path() / folder / "index.json"));
  }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

TEST_CASE("values of a run become files, also those that are overwritten later") {
  const DumpSession session;
  const Finished done = session.Run({"--dump-values", "new/values"});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Catch::Contains("wrote 2 values to new/values\n"));
  const json index = session.Index("new/values");
  CHECK(index["model"] == "model.asm");
  CHECK(index["function"] == "main");
  CHECK(index["complete"] == true);
  REQUIRE(index["values"].size() == 2);
  const json& first = index["values"][0];
  CHECK(first["node"] == "first/sum");
  CHECK(first["operator"] == "Add");
  CHECK(first["kernel"] == "rewire.add");
  CHECK(first["function"] == "main");
  CHECK(first["pc"].is_number());
  CHECK(first["register"] == "%2");
  CHECK(first["value"] == "");
  CHECK(first["dtype"] == "f32");
  CHECK(first["shape"] == json({2}));
  CHECK(first["file"] == "00000-first_sum.npy");
  CHECK(session.Elements("new/values/00000-first_sum.npy") == "2 4 ");
  CHECK(session.Elements("new/values/00001-rewire.add.npy") == "4 8 ");
  const Finished reported = session.Run({"--dump-values", "other", "--json"});
  CHECK(json::parse(reported.out)["dumped"] == json({{"folder", "other"}, {"files", 2}}));
}

TEST_CASE("what a failing run has made is there, and the index says that it is not all") {
  const DumpSession session;
  const Finished done = session.Run({"-f", "fails", "--dump-values", "values"});
  CHECK(done.exit_code == 19);
  const json index = session.Index("values");
  CHECK(index["complete"] == false);
  REQUIRE(index["values"].size() == 1);
  CHECK(session.Elements("values/" + index["values"][0]["file"].get<std::string>()) == "2 4 ");
}

TEST_CASE("a dump overwrites nothing") {
  const DumpSession session;
  std::filesystem::create_directory(session.folder().path() / "used");
  session.folder().Write("used/notes.txt", "mine");
  const Finished used = session.Run({"--dump-values", "used"});
  CHECK(used.exit_code == 11);
  CHECK(used.err == "vm-run: error: --dump-values: there are files in 'used' already; name a new folder\n");
  const Finished file = session.Run({"--dump-values", "model.asm"});
  CHECK(file.exit_code == 13);
  CHECK_THAT(file.err,
             Catch::StartsWith("vm-run: error: --dump-values: cannot make the folder 'model.asm': "));
  const Finished repeated = session.Run({"--dump-values", "new", "--repeat", "2"});
  CHECK(repeated.exit_code == 11);
  CHECK_THAT(repeated.err, Catch::Contains("--repeat"));
}

TEST_CASE("after an interrupt there are whole files, and an index of them") {
  const DumpSession session;
  session.folder().Write("endless.asm",
                         ".kernel sum = \"rewire.add\"\n"
                         ".func main(x: f32[2]) -> y: f32[2]\n"
                         "  %storage = alloc_storage _, alignment=64, f32[2], cpu\n"
                         "again:\n"
                         "  %sum = alloc_tensor %storage, _, f32[2]\n"
                         "  invoke_packed sum(%x, %x, %sum), outputs=1\n"
                         "  goto again\n"
                         "  ret %x\n.end\n");
  test::Streams streams;
  streams.signal = SIGINT;
  // An interrupt that comes before the run begins leaves no folder.
  streams.signal_after = "values";
  const std::filesystem::path values = session.folder().path() / "values";
  const Finished done =
      test::RunProgram("vm-run", {"endless.asm", "-i", "x=2xf32=1,2", "--dump-values", "values"},
                       session.folder().path(), streams);
  CHECK(done.exit_code == 128 + SIGINT);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(values)) {
    INFO(entry.path());
    CHECK((entry.path().extension() == ".npy" || entry.path().filename() == "index.json"));
    if (entry.path().extension() != ".npy") continue;
    ++files;
    CHECK(ReadNpy(entry.path().string()).has_value());
  }
  const json index = session.Index("values");
  CHECK(index["complete"] == false);
  CHECK(index["values"].size() == files);
}

}  // namespace
}  // namespace rewire::tools
