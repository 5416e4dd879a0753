// SPDX-License-Identifier: Apache-2.0
// Tools leave files alone that they were not asked to change, and say so when files,
// streams or numbers are not as they should be: always one message and an exit code of the
// table,
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

namespace fs = std::filesystem;
using test::Finished;
using test::Streams;

constexpr char kSafeProgram[] = R"(
.param w: f32[2]
.kernel add = "rewire.add"
.func main(x: f32[2]) -> y: f32[2]
  %w = load_const w
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %y = alloc_tensor %s, _, f32[2]
  invoke_packed add(%x, %w, %y), outputs=1
  ret %y
.end
)";

// Returns its inputs. One is far larger than any memory.
constexpr char kHuge[] = R"(
.func main(x: f32[35184372088832]) -> y: f32[35184372088832]
  ret %x
.end
.func symbolic(x: f32[N, 1048576]) -> y: f32[N, 1048576]
  ret %x
.end
)";

class SafetySession {
 public:
  SafetySession() {
    folder_.Write("model.asm", kSafeProgram);
    folder_.Write("huge.asm", kHuge);
    tvm::RelaySpec relay;
    relay.functions.push_back({"main", "4", {"x"}, {{1, 0}}, ""});
    folder_.Write("model.ro", WriteRelay(relay));
    for (const char* name : {"model", "huge"}) {
      REQUIRE(Run("vm-as", {std::string(name) + ".asm"}).exit_code == 0);
    }
    // y = x, to make files of tensors with.
    folder_.Write("same.asm", ".func main(x: f32[2]) -> w: f32[2]\n  ret %x\n.end\n");
    for (const char* file : {"w.npz", "w.safetensors"}) {
      REQUIRE(Run("vm-run", {"same.asm", "-i", "x=2xf32=10,20", "-o", std::string("@") + file}).exit_code ==
              0);
    }
    REQUIRE(Run("vm-run", {"same.asm", "-i", "x=2xf32=1,2", "-o", "w=@x.npy"}).exit_code == 0);
    REQUIRE(Run("vm-params", {"convert", "w.npz", "-o", "w.params"}).exit_code == 0);
    REQUIRE(Run("vm-params", {"convert", "w.npz", "-o", "weights.rwx"}).exit_code == 0);
    REQUIRE(Run("vm-bundle", {"model.rwx", "huge.rwx", "-o", "both.rwx"}).exit_code == 0);
  }
  Finished Run(const std::string& tool, const std::vector<std::string>& arguments,
               const Streams& streams = {}) const {
    Finished finished = test::RunProgram(tool, arguments, folder_.path(), streams);
    // A sanitizer's report has many lines.
    INFO(tool << " " << (arguments.empty() ? "" : arguments.front()) << "\n" << finished.err);
    CHECK((finished.exit_code <= 27 || finished.exit_code == 128 + SIGPIPE));
    CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') <= 1);
    CHECK(finished.err.find("fault of this program") == std::string::npos);
    return finished;
  }
  fs::path operator/(const std::string& name) const { return folder_.path() / name; }
  std::string Content(const std::string& name) const { return test::ReadWholeFile(folder_.path() / name); }
  const test::TempFolder& folder() const { return folder_; }
  // Names of files that were left behind unfinished.
  std::string Unfinished() const {
    std::string names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.find(".tmp") != std::string::npos) names += name + " ";
    }
    return names;
  }

 private:
  test::TempFolder folder_;
};

// A call that reads `input` and would write OUT.
struct SafeCall {
  const char* tool;
  const char* input;
  std::vector<std::string> arguments;
};

std::vector<SafeCall> SafeCalls() {
  return {
      {"vm-as", "model.asm", {"model.asm", "-o", "OUT"}},
      {"vm-dis", "model.rwx", {"model.rwx", "-o", "OUT"}},
      {"vm-convert", "model.ro", {"model.ro", "-o", "OUT"}},
      {"vm-bundle", "model.rwx", {"a=model.rwx", "b=huge.rwx", "-o", "OUT"}},
      {"vm-bundle", "huge.rwx", {"a=model.rwx", "b=huge.rwx", "-o", "OUT"}},
      {"vm-params", "weights.rwx", {"convert", "weights.rwx", "-o", "OUT"}},
      {"vm-params", "w.params", {"convert", "w.params", "-o", "OUT"}},
      {"vm-params", "w.safetensors", {"convert", "w.safetensors", "-o", "OUT"}},
      {"vm-params", "w.npz", {"convert", "w.npz", "-o", "OUT"}},
      {"vm-params", "model.rwx", {"compress", "model.rwx", "-o", "OUT"}},
      {"vm-run", "x.npy", {"model.rwx", "-i", "x=@x.npy", "--params", "w.npz", "-o", "y=@OUT"}},
      {"vm-run", "w.npz", {"model.rwx", "-i", "x=@x.npy", "--params", "w.npz", "-o", "@OUT"}},
      {"vm-run", "w.safetensors", {"model.rwx", "-i", "x=@x.npy", "--params", "w.safetensors", "-o", "@OUT"}},
      {"vm-run", "model.rwx", {"model.rwx", "-i", "x=@x.npy", "--params", "w.npz", "--profile-trace", "OUT"}},
      {"vm-run",
       "both.rwx",
       {"both.rwx", "--model", "model", "-i", "x=@x.npy", "--params", "w.npz", "-o", "y=@OUT"}},
      {"vm-run",
       "e.npy",
       {"model.rwx", "-i", "x=@x.npy", "--params", "w.npz", "-e", "y=@e.npy", "-o", "y=@OUT"}},
  };
}

std::vector<std::string> WithOutput(std::vector<std::string> arguments, const std::string& output) {
  for (std::string& argument : arguments) {
    const std::size_t at = argument.find("OUT");
    if (at != std::string::npos) argument.replace(at, 3, output);
  }
  return arguments;
}

TEST_CASE("no tool writes over a file that it has read, by whatever name") {
  const SafetySession session;
  fs::copy_file(session / "x.npy", session / "e.npy");
  for (const SafeCall& call : SafeCalls()) {
    const std::string before = session.Content(call.input);
    const std::string extension = fs::path(call.input).extension().string();
    fs::create_symlink(call.input, session / ("soft" + extension));
    fs::create_hard_link(session / call.input, session / ("hard" + extension));
    fs::create_directory(session / "deeper");
    for (const std::string& output : {std::string(call.input), "./deeper/../" + std::string(call.input),
                                      "soft" + extension, "hard" + extension}) {
      INFO(call.tool << " over " << output);
      const Finished finished = session.Run(call.tool, WithOutput(call.arguments, output));
      CHECK(finished.exit_code == 11);
      CHECK_THAT(finished.err, Catch::Contains("the output '" + output + "' is the file '") &&
                                   Catch::Contains("which was read as an input; name another output"));
      CHECK(session.Content(call.input) == before);
    }
    CHECK(fs::is_symlink(session / ("soft" + extension)));
    fs::remove(session / ("soft" + extension));
    fs::remove(session / ("hard" + extension));
  }
  CHECK(session.Unfinished().empty());
}

TEST_CASE("standard input is an input, and one output does not write over another") {
  const SafetySession session;
  const std::string before = session.Content("model.asm");
  Streams from_model;
  from_model.in = (session / "model.asm").string();
  for (const char* output : {"/dev/stdin", "model.asm"}) {
    const Finished finished = session.Run("vm-as", {"-", "-o", output}, from_model);
    CHECK(finished.exit_code == 11);
    CHECK_THAT(finished.err, Catch::Contains("which was read as an input"));
  }
  CHECK(session.Content("model.asm") == before);

  const std::vector<std::string> run = {"model.rwx", "-i", "x=@x.npy", "--params", "w.npz", "-o", "y=@y.npy"};
  std::vector<std::string> twice = run;
  twice.insert(twice.end(), {"--profile-trace", "./y.npy"});
  const Finished finished = session.Run("vm-run", twice);
  CHECK(finished.exit_code == 11);
  CHECK_THAT(finished.err, Catch::Contains("is the file 'y.npy', which was written just before"));
}

TEST_CASE("inputs that cannot be read are errors that name them") {
  const SafetySession session;
  REQUIRE(mkfifo((session / "pipe").c_str(), 0600) == 0);
  fs::create_directory(session / "folder");
  for (const SafeCall& call : SafeCalls()) {
    if (call.input == std::string("e.npy")) continue;
    for (const std::string input : {"pipe", "folder", "none", "/dev/null", "/dev/zero"}) {
      // A model in place of FILE, a file of tensors in place of another.
      std::vector<std::string> arguments = WithOutput(call.arguments, "out.rwx");
      for (std::string& argument : arguments) {
        const std::size_t at = argument.find(call.input);
        if (at != std::string::npos) argument.replace(at, std::string(call.input).size(), input);
      }
      INFO(call.tool << " of " << input << " for " << call.input);
      const Finished finished = session.Run(call.tool, arguments);
      // A text of nothing is a program of no functions.
      const bool empty = call.tool == std::string("vm-as") && (input == "pipe" || input == "/dev/null");
      CHECK((empty ? finished.exit_code == 0 : finished.exit_code >= 11));
      CHECK(fs::remove(session / "out.rwx") == empty);
    }
  }
  CHECK_THAT(session.Run("vm-run", {"pipe"}).err,
             Catch::Contains("cannot map 'pipe': it is a device or a pipe, a file is expected"));
}

TEST_CASE("outputs that cannot be written are errors, and what was there stays") {
  const SafetySession session;
  fs::create_directory(session / "folder");
  REQUIRE(mkfifo((session / "pipe").c_str(), 0600) == 0);
  for (const SafeCall& call : SafeCalls()) {
    if (call.input == std::string("e.npy")) continue;
    for (const std::string output : {"folder", "none/out", "pipe", "/dev/full", "/proc/version"}) {
      // The format is told by the ending, here of the name of what cannot be written.
      const bool by_ending = call.tool == std::string("vm-params") || call.input == std::string("w.npz") ||
                             call.input == std::string("w.safetensors");
      std::string path = output;
      if (by_ending && output == "none/out") {
        path += fs::path(call.input).extension().string();
      } else if (by_ending) {
        path = "link" + fs::path(call.input).extension().string();
        fs::remove(session / path);
        fs::create_symlink(output, session / path);
      }
      INFO(call.tool << " to " << output << " for " << call.input);
      const Finished finished = session.Run(call.tool, WithOutput(call.arguments, path));
      CHECK(finished.exit_code == 13);
      CHECK_THAT(finished.err, Catch::Contains("cannot write '" + path + "': "));
    }
  }
  CHECK(session.Unfinished().empty());
}

TEST_CASE("standard output that is closed, or that nobody reads, is an error and no part of a file") {
  const SafetySession session;
  session.folder().Write("long.asm", [] {
    std::string text = ".func main() -> y: integer\n  %y = load_consti 1\n";
    for (int i = 0; i < 5000; ++i) text += "  %y = load_consti " + std::to_string(i) + "\n";
    return text + "  ret %y\n.end\n";
  }());
  REQUIRE(session.Run("vm-as", {"long.asm"}).exit_code == 0);
  const std::vector<std::pair<const char*, std::vector<std::string>>> calls = {
      {"vm-dis", {"long.rwx"}},
      {"vm-inspect", {"model.rwx"}},
      {"vm-params", {"list", "w.npz"}},
      {"vm-convert", {"model.ro", "-o", "out.rwx"}},
      {"vm-bundle", {"model.rwx", "-o", "out.rwx"}},
      {"vm-run", {"long.rwx", "--trace"}},
      {"vm-run", {"model.rwx", "-i", "x=@x.npy", "--params", "w.npz", "-o", "y=@y.npy"}},
      {"vm-run", {"--help"}},
      {"vm-as", {"--version"}},
  };
  Streams closed, unread, full;
  closed.out_closed = true;
  unread.out_unread = true;
  full.out = "/dev/full";
  for (const auto& [tool, arguments] : calls) {
    INFO(tool << " " << arguments[0]);
    CHECK(session.Run(tool, arguments, closed).err ==
          std::string(tool) + ": error: cannot write standard output: Bad file descriptor\n");
    CHECK(session.Run(tool, arguments, unread).err.empty());  // as behind `| head`
    CHECK(session.Run(tool, arguments, full).err ==
          std::string(tool) + ": error: cannot write standard output: No space left on device\n");
  }
  // The written file is whole: nothing that was printed went into it.
  CHECK(session.Content("y.npy").size() == 128 + 8);
  CHECK(session.Run("vm-inspect", {"out.rwx", "--check"}).exit_code == 0);
  CHECK(session.Unfinished().empty());
  Streams none;
  none.in_closed = true;
  CHECK(session.Run("vm-as", {"-", "-o", "empty.rwx"}, none).exit_code >= 0);
}

TEST_CASE("sizes and numbers beyond all reason are refused") {
  const SafetySession session;
  const auto refused = [&](int exit_code, const std::string& message, const std::vector<std::string>& more,
                           const std::string& file = "model.rwx") {
    std::vector<std::string> arguments = {file, "--params", "w.npz", "-i", "x=@x.npy"};
    if (file != "model.rwx") arguments = {file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = session.Run("vm-run", arguments);
    INFO(more.front() << ": " << finished.err);
    CHECK(finished.exit_code == exit_code);
    CHECK_THAT(finished.err, Catch::Contains(message));
  };
  refused(25, "input 'x': a tensor of 128.0 TiB is asked for, and the machine has ", {"--random"},
          "huge.rwx");
  refused(25, "input 'x': a tensor of ", {"-f", "symbolic", "--random", "--dim", "N=1000000"}, "huge.rwx");
  refused(11, "--threads: expected a whole number from 1 to 4096, given '0'", {"--threads", "0"});
  refused(11, "--threads: expected a whole number from 1 to 4096, given '1000000000'",
          {"--threads", "1000000000"});
  refused(11, "--threads: ", {"--threads", "-1"});
  refused(11, "--threads: ", {"--threads", "99999999999999999999999"});
  refused(11, "--repeat: ", {"--repeat", "-1"});
  refused(11, "--repeat: ", {"--repeat", "4294967296"});
  refused(11, "--seed", {"--seed", "-1"});
  refused(11, "--max-steps", {"--max-steps", "1e9"});
  refused(11, "--max-bytes: ", {"--max-bytes", "99999999999999999999"});
  refused(11, "--max-bytes: ", {"--max-bytes", "18446744073709551615T"});
  refused(11, "--deadline: ", {"--deadline", "1e300s"});
  refused(11, "--deadline: ", {"--deadline", "nans"});
  refused(11, "--rtol: ", {"--rtol", "-1"});
  refused(12, "--dim: no symbolic dimension", {"--dim", "N=9223372036854775807"});
  refused(11, "a tensor of ", {"-i", "0=9999999999999x99xf32=0"});
  refused(11, "", {"-i", "0=99999999999999999999xf32=0"});
  refused(22, "", {"--max-bytes", "1"});
  CHECK(session.Run("vm-params", {"compress", "weights.rwx", "-o", "small.rwx", "--level", "23"}).exit_code ==
        11);
  CHECK(session.Run("vm-run", {"model.rwx", "--params", "w.npz", "-i", "x=@x.npy", "--threads", "64"})
            .exit_code == 0);
}

TEST_CASE("names that are not UTF-8 are files like others") {
  const SafetySession session;
  const std::string odd = "mod\xff\xfe.rwx";
  CHECK(session.Run("vm-as", {"model.asm", "-o", odd}).exit_code == 0);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{odd, "--json"}, {odd, "--check"}, {"none\xff", "--json"}}) {
    session.Run("vm-inspect", arguments);
  }
  const std::vector<std::string> run = {odd, "--params", "w.npz", "-i", "x=@x.npy", "--json"};
  CHECK(session.Run("vm-run", run).exit_code == 0);
  std::vector<std::string> more = run;
  more.insert(more.end(), {"--profile-trace", "t\xff.json", "-o", "y=@y\xff.npy"});
  CHECK(session.Run("vm-run", more).exit_code == 0);
  more = run;
  more.insert(more.end(), {"-i", "\xff=1", "-e", "\xfe=2"});
  CHECK(session.Run("vm-run", more).exit_code == 12);
  CHECK(session.Run("vm-run", {odd, "--\xff"}).exit_code == 11);
  CHECK(session.Run("vm-dis", {odd, "-o", "t\xff.asm"}).exit_code == 0);
  CHECK(session.Run("vm-bundle", {odd, "-o", "b\xff.rwx", "--json"}).exit_code >= 0);
  CHECK(session.Run("vm-convert", {"model.ro", "-o", "c\xff.rwx", "--json"}).exit_code == 0);
  CHECK(session.Run("vm-params", {"convert", "w.npz", "-o", "p\xff.rwx", "--json"}).exit_code == 0);
  CHECK(session.Run("vm-params", {"list", "p\xff.rwx", "--json"}).exit_code == 0);
}

}  // namespace
}  // namespace rewire::tools
