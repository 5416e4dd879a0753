// SPDX-License-Identifier: Apache-2.0
// --log-level and --log-file: what is logged, where, and what may not be written over.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using Catch::Contains;
using test::Finished;

constexpr char kRelu[] = R"(
.kernel relu = "rewire.relu"
.func main(x: f32[2]) -> y: f32[2]
  %storage = alloc_storage _, alignment=64, f32[2], cpu
  %y = alloc_tensor %storage, _, f32[2]
  invoke_packed relu(%x, %y), outputs=1
  ret %y
.end
)";

class Model {
 public:
  Model() {
    folder_.Write("relu.asm", kRelu);
    REQUIRE(test::RunProgram("vm-as", {"relu.asm"}, folder_.path()).exit_code == 0);
  }
  Finished Run(std::vector<std::string> options) const {
    options.insert(options.begin(), {"relu.rwx", "-i", "x=2xf32=-1,2"});
    return test::RunProgram("vm-run", options, folder_.path());
  }
  std::string Content(const std::string& name) const { return test::ReadWholeFile(folder_.path() / name); }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

// An entry has this text behind its level, once.
bool HasEntry(const std::string& log, const std::string& entry) {
  return log.find("] [" + entry) != std::string::npos && log.front() == '[';
}

TEST_CASE("a log file has the command, what was written and how it ended") {
  const Model model;
  const Finished plain = model.Run({"-o", "y=@y.npy"});
  const Finished finished = model.Run({"-o", "y=@y.npy", "--log-file", "log"});
  CHECK(finished.exit_code == 0);
  CHECK(finished.out == plain.out);
  CHECK(finished.err.empty());
  const std::string log = model.Content("log");
  INFO(log);
  CHECK_THAT(log, Contains("[vm-run "));
  CHECK_THAT(log, Contains("vm-run relu.rwx -i x=2xf32=-1,2 -o y=@y.npy --log-file log\n"));
  CHECK(HasEntry(log, "info] wrote y.npy\n"));
  CHECK(HasEntry(log, "info] exit code 0\n"));
  CHECK_THAT(log, !Contains("[debug]"));

  // A second run is appended, with what the library logs.
  CHECK(model.Run({"--log-file", "log", "--log-level", "debug"}).err.empty());
  const std::string both = model.Content("log");
  CHECK(both.substr(0, log.size()) == log);
  CHECK_THAT(both.substr(log.size()),
             Contains("[debug] 1 kernels from ") && Contains("librewire_kernels_cpu.so"));
  CHECK_THAT(both.substr(log.size()), Contains("[debug] linked relu.rwx: "));
}

TEST_CASE("without a file the log goes to standard error, beside what --verbose says") {
  const Model model;
  const Finished logged = model.Run({"--log-level", "debug"});
  CHECK(logged.exit_code == 0);
  CHECK(HasEntry(logged.err, "debug] 1 kernels from "));
  CHECK(logged.out == model.Run({}).out);
  CHECK(model.Run({"--log-level", "error"}).err.empty());
  CHECK(model.Run({"--log-level", "off", "--log-file", "none"}).err.empty());

  const Finished verbose = model.Run({"-v"});
  CHECK_THAT(verbose.err, Contains("1 kernels from ") && !Contains("[debug]"));
  const Finished with_file = model.Run({"-v", "--log-file", "log", "--log-level", "info"});
  CHECK(std::count(with_file.err.begin(), with_file.err.end(), '\n') ==
        std::count(verbose.err.begin(), verbose.err.end(), '\n'));
  CHECK_THAT(model.Content("log"), !Contains("kernels from"));
}

TEST_CASE("errors are logged") {
  const Model model;
  const Finished finished = model.Run({"-i", "z=1", "--log-file", "log", "--log-level", "error"});
  CHECK(finished.exit_code != 0);
  const std::string log = model.Content("log");
  INFO(log);
  const std::string message = finished.err.substr(std::string("vm-run: error: ").size());
  CHECK(HasEntry(log, "error] " + message));
  CHECK(std::count(log.begin(), log.end(), '\n') == 1);
}

TEST_CASE("a log that cannot be written is an error, and no other file becomes one") {
  const Model model;
  const std::string before = model.Content("relu.rwx");
  const Finished over = model.Run({"--log-file", "relu.rwx"});
  CHECK(over.exit_code == 11);
  CHECK(over.err == "vm-run: error: --log-file: 'relu.rwx' exists and is no log; name another file\n");
  CHECK(model.Content("relu.rwx") == before);
  const Finished nowhere = model.Run({"--log-file", "/proc/none/log"});
  CHECK(nowhere.exit_code == 13);
  CHECK_THAT(nowhere.err, Contains("vm-run: error: --log-file: ") && Contains("/proc/none"));
  const Finished full = model.Run({"--log-file", "/dev/full"});
  CHECK(full.exit_code == 13);
  CHECK_THAT(full.err, Contains("the log cannot be written: ") && Contains("No space left on device"));
  CHECK(model.Run({"--log-level", "loud"}).exit_code == 11);
}

}  // namespace
}  // namespace rewire::tools
