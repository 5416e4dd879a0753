// SPDX-License-Identifier: Apache-2.0
// People make these mistakes, with every tool: one clear line, the kind's exit code, and with --json the same
// as an object. Nothing is written over, and nothing is left behind.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/support/terminal.h"
#include "rewire/tests/tools/small_onnx.h"

namespace rewire::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Finished;
using test::Streams;

constexpr char kMistakenProgram[] = R"(
.kernel relu = "rewire.relu"
.func main(image: f32[2, 3], mask: i64[N]) -> scores: f32[2, 3]
  %storage = alloc_storage _, alignment=64, f32[2, 3], cpu
  %scores = alloc_tensor %storage, _, f32[2, 3]
  invoke_packed relu(%image, %scores), outputs=1
  ret %scores
.end
)";

constexpr char kEndless[] = R"(
.func main() -> y: integer
  %zero = load_consti 0
again:
  %one = load_consti 1
  if %zero == %one goto out else again
out:
  ret %zero
.end
)";

bool HasCompiler() { return fs::exists(std::string(test::BuildDir()) + "/bin/vm-compile"); }

// A command that works. IN is its input, OUT what it writes.
struct Call {
  std::string tool;
  std::string input;
  std::vector<std::string> arguments;
};

std::vector<Call> Calls() {
  std::vector<Call> calls = {
      {"vm-as", "model.asm", {"IN", "-o", "OUT"}},
      {"vm-bench", "model.rwx", {"IN", "--dim", "N=1", "--duration", "1ms", "--samples", "OUT"}},
      {"vm-bundle", "model.rwx", {"a=IN", "-o", "OUT"}},
      {"vm-convert", "model.ro", {"IN", "-o", "OUT"}},
      {"vm-debug", "model.rwx", {"IN", "--random", "--dim", "N=1", "-x", "script"}},
      {"vm-dis", "model.rwx", {"IN", "-o", "OUT"}},
      {"vm-inspect", "model.rwx", {"IN"}},
      {"vm-params", "w.npz", {"convert", "IN", "-o", "OUT"}},
      {"vm-run", "model.rwx", {"IN", "--random", "--dim", "N=1", "-o", "scores=@OUT"}},
      {"vm-strip", "model.rwx", {"IN", "-o", "OUT"}},
  };
  if (HasCompiler()) calls.push_back({"vm-compile", "model.onnx", {"IN", "-o", "OUT"}});
  return calls;
}

std::vector<std::string> With(std::vector<std::string> arguments, const std::string& in,
                              const std::string& out) {
  for (std::string& argument : arguments) {
    if (const std::size_t at = argument.find("IN"); at != std::string::npos) argument.replace(at, 2, in);
    if (const std::size_t at = argument.find("OUT"); at != std::string::npos) argument.replace(at, 3, out);
  }
  return arguments;
}

class MistakeSession {
 public:
  MistakeSession() {
    folder_.Write("model.asm", kMistakenProgram);
    folder_.Write("endless.asm", kEndless);
    folder_.Write("script", "start\n");
    tvm::RelaySpec relay;
    relay.functions.push_back({"main", "4", {"x"}, {{1, 0}}, ""});
    folder_.Write("model.ro", WriteRelay(relay));
    folder_.Write("model.onnx", test::SmallOnnx("Relu"));
    folder_.Write("unknown.onnx", test::SmallOnnx("Nonsense"));
    folder_.Write("same.asm", ".func main(x: f32[2]) -> w: f32[2]\n  ret %x\n.end\n");
    REQUIRE(Run("vm-as", {"model.asm"}).exit_code == 0);
    REQUIRE(Run("vm-run", {"same.asm", "-i", "x=2xf32=1,2", "-o", "@w.npz"}).exit_code == 0);
    fs::create_directory(folder_.path() / "folder");
    fs::permissions(folder_.path(), fs::perms(0755));
  }
  Finished Run(const std::string& tool, const std::vector<std::string>& arguments,
               Streams streams = {}) const {
    if (streams.in.empty() && !streams.in_waits) streams.in = "/dev/null";
    return test::RunProgram(tool, arguments, folder_.path(), streams);
  }
  // The mistake ends with this code, and one line that has the text. So it does with --json, where standard
  // output has an object with the same.
  void Refused(const std::string& tool, std::vector<std::string> arguments, int exit_code,
               const std::string& text, const Streams& streams = {}) const {
    std::string line = tool;
    for (const std::string& argument : arguments) line += " " + argument;
    INFO(line);
    const Finished plain = Run(tool, arguments, streams);
    INFO(plain.err);
    CHECK(plain.exit_code == exit_code);
    CHECK(plain.err.find(tool + ": error: ") == 0);
    CHECK_THAT(plain.err, Catch::Contains(text));
    CHECK(std::count(plain.err.begin(), plain.err.end(), '\n') == 1);
    CHECK(plain.err.find("fault of this program") == std::string::npos);
    if (tool != "vm-debug") CHECK(plain.out.empty());  // its script shows what it did

    // Behind the command of vm-params; an option that lacks its value stays last.
    arguments.insert(arguments.begin() + (tool == "vm-params" && !arguments.empty() ? 1 : 0), "--json");
    const Finished finished = Run(tool, arguments, streams);
    CHECK(finished.exit_code == exit_code);
    CHECK(finished.err == plain.err);
    if (!streams.out.empty() || streams.out_closed || streams.out_unread) return;
    INFO(finished.out);
    // vm-debug prints an object a command, the wrong one last.
    const std::size_t last = tool == "vm-debug" ? finished.out.rfind("\n{") : std::string::npos;
    const json object =
        json::parse(last == std::string::npos ? finished.out : finished.out.substr(last), nullptr, false);
    REQUIRE(object.is_object());
    REQUIRE(object.contains("error"));
    CHECK(object["error"]["code"] == exit_code - 10);
    CHECK(object["error"]["name"].is_string());
    CHECK_THAT(object["error"]["message"].get<std::string>() + "\n", Catch::Contains(text));
  }
  const test::TempFolder& folder() const { return folder_; }
  std::string Content(const std::string& name) const { return test::ReadWholeFile(folder_.path() / name); }
  std::string Unfinished() const {
    std::string names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().string().find(".tmp") != std::string::npos) names += entry.path().string() + " ";
    }
    return names;
  }

 private:
  test::TempFolder folder_;
};

TEST_CASE("every call of the table works when nothing is wrong") {
  const MistakeSession session;
  for (const Call& call : Calls()) {
    const std::string out = "out" + fs::path(call.input).extension().string();
    const Finished finished = session.Run(call.tool, With(call.arguments, call.input, out));
    INFO(call.tool << " " << finished.err);
    CHECK(finished.exit_code == 0);
    CHECK(finished.err.empty());

    std::vector<std::string> logged = With(call.arguments, call.input, "logged" + out);
    logged.insert(logged.end(), {"--log-file", call.tool + ".log"});
    CHECK(session.Run(call.tool, logged).exit_code == 0);
    CHECK_THAT(session.Content(call.tool + ".log"), Catch::Contains("exit code 0"));
  }
}

TEST_CASE("mistakes on the command line, with every tool") {
  const MistakeSession session;
  for (const Call& call : Calls()) {
    const std::string command = call.tool == "vm-params" ? "convert" : "";
    const auto behind = [&](std::vector<std::string> arguments) {
      if (!command.empty()) arguments.insert(arguments.begin(), command);
      return arguments;
    };
    session.Refused(call.tool, behind({}), 11, "required");
    session.Refused(call.tool, behind({call.input, "--hepl"}), 11, "'--hepl'; did you mean '--help'?");
    session.Refused(call.tool, behind({call.input, "--xyzzy"}), 11, "unexpected argument '--xyzzy'");
    if (call.tool != "vm-inspect" && call.tool != "vm-debug" && call.tool != "vm-bench") {
      session.Refused(call.tool, behind({call.input, "-o"}), 11, "--output");
    }
  }
}

TEST_CASE("inputs that are not what a tool takes, with every tool") {
  const MistakeSession session;
  const std::string longest(300, 'a');
  Streams unprivileged;
  unprivileged.unprivileged = true;
  for (const Call& call : Calls()) {
    const std::string extension = fs::path(call.input).extension().string();
    const auto refused = [&](const std::string& input, int exit_code, const std::string& text,
                             const Streams& streams = {}) {
      session.Refused(call.tool, With(call.arguments, input, "out" + extension), exit_code, text, streams);
      CHECK(!fs::exists(session.folder().path() / ("out" + extension)));
    };
    refused("none" + extension, 12, "'none" + extension + "': No such file or directory");
    refused("none\xff" + extension, 12, "No such file or directory");
    refused(longest + extension, 13, "File name too long");
    fs::create_directory(session.folder().path() / ("dir" + extension));
    refused("dir" + extension, 13, "dir" + extension);
    session.folder().Write("secret" + extension, session.Content(call.input));
    fs::permissions(session.folder().path() / ("secret" + extension), fs::perms(0));
    refused("secret" + extension, 13, "Permission denied", unprivileged);
    // No content is wrong for text: it is a program without functions.
    if (call.tool == "vm-as") continue;
    session.folder().Write("empty" + extension, "");
    session.folder().Write("noise" + extension, "\x01this is nothing of the kind\xff");
    session.folder().Write("cut" + extension,
                           session.Content(call.input).substr(0, session.Content(call.input).size() / 2));
    for (const std::string file : {"empty", "noise", "cut"}) {
      if (call.tool == "vm-inspect" && file == "cut") continue;  // which tells what is left
      const std::string path = file + extension;
      const Finished finished = session.Run(call.tool, With(call.arguments, path, "out" + extension));
      INFO(call.tool << " " << path << ": " << finished.err);
      // The kind of error depends on the reader: an invalid file, or a version that it does not know.
      session.Refused(call.tool, With(call.arguments, path, "out" + extension), finished.exit_code, path);
      CHECK((finished.exit_code == 14 || finished.exit_code == 15 || finished.exit_code == 13));
    }
  }
}

TEST_CASE("outputs that cannot be written, with every tool that writes") {
  const MistakeSession session;
  Streams unprivileged;
  unprivileged.unprivileged = true;
  for (const Call& call : Calls()) {
    if (call.tool == "vm-inspect" || call.tool == "vm-debug") continue;
    const std::string extension = call.tool == "vm-run" ? ".npy" : fs::path(call.input).extension().string();
    const auto refused = [&](const std::string& output, int exit_code, const std::string& text,
                             const Streams& streams = {}) {
      session.Refused(call.tool, With(call.arguments, call.input, output), exit_code, text, streams);
    };
    const std::string before = session.Content(call.input);
    refused("none/out" + extension, 13,
            "cannot write 'none/out" + extension + "': No such file or directory");
    fs::create_directories(session.folder().path() / ("dir" + extension));
    refused("dir" + extension, 13, "cannot write 'dir" + extension + "': Is a directory");
    fs::create_symlink("/dev/full", session.folder().path() / ("full" + extension));
    refused("full" + extension, 13, "cannot write 'full" + extension + "': No space left on device");
    fs::remove(session.folder().path() / ("full" + extension));
    refused("denied" + extension, 13, "cannot write 'denied" + extension + "': Permission denied",
            unprivileged);
    refused(call.input, 11, "the output '" + call.input + "' is the file '" + call.input + "'");
    CHECK(session.Content(call.input) == before);
  }
  CHECK(session.Unfinished().empty());
}

TEST_CASE("standard output that is full, closed or unread, with every tool") {
  const MistakeSession session;
  Streams full, closed, unread;
  full.out = "/dev/full";
  closed.out_closed = true;
  unread.out_unread = true;
  for (const Call& call : Calls()) {
    // vm-as and vm-dis say nothing about a file that they have written.
    const std::vector<std::string> talks =
        call.tool == "vm-as" ? std::vector<std::string>{"--help"}
        : call.tool == "vm-dis"
            ? std::vector<std::string>{"model.rwx"}
            : With(call.arguments, call.input, "out" + fs::path(call.input).extension().string());
    session.Refused(call.tool, talks, 13, "cannot write standard output: No space left on device", full);
    session.Refused(call.tool, talks, 13, "cannot write standard output: Bad file descriptor", closed);
    // The reader has enough, as behind `| head`: nothing is said, and the exit code is that of SIGPIPE.
    const Finished unheard = session.Run(call.tool, talks, unread);
    CHECK(unheard.exit_code == 128 + SIGPIPE);
    CHECK(unheard.err.empty());
  }
}

TEST_CASE("wrong names, shapes, dtypes and numbers") {
  const MistakeSession session;
  const std::vector<std::string> works = {"model.rwx", "-i", "image=2x3xf32=1", "-i", "mask=2xi64=0"};
  const auto run = [&](std::vector<std::string> more, int exit_code, const std::string& text) {
    more.insert(more.begin(), works.begin(), works.end());
    session.Refused("vm-run", more, exit_code, text);
  };
  run({"-i", "imgae=1"}, 12, "did you mean 'image'?");
  run({"-i", "7=1"}, 12, "has no input 7");
  run({"-i", "image=2x3xf32=1"}, 11, "given twice");
  run({"-o", "scors=@y.npy"}, 12, "did you mean 'scores'?");
  run({"-e", "scors=@y.npy"}, 12, "did you mean 'scores'?");
  run({"-f", "mian"}, 12, "did you mean 'main'?");
  run({"--model", "large"}, 11, "");
  run({"--dim", "M=3"}, 12, "no symbolic dimension is called 'M'");
  run({"--dim", "batch="}, 12, "no symbolic dimension is called 'batch'; the symbolic dimensions: N");
  run({"--dim", "N"}, 11, "--dim: 'N' is no size of a dimension: expected NAME=SIZE");
  run({"--repeat", "many"}, 11, "--repeat: expected a whole number of at least 1, given 'many'");
  run({"--threads", "0"}, 11, "--threads: expected a whole number from 1 to 4096, given '0'");
  run({"--max-bytes", "5X"}, 11, "--max-bytes: '5X' is no size");
  run({"--deadline", "5"}, 11, "--deadline: '5' is no time");
  run({"--kernels", "libnone.so"}, 12, "kernel library 'libnone.so' was not found");
  run({"--kernels", "./w.npz"}, 14, "not a shared library");
  run({"--params", "none.npz"}, 12, "none.npz");
  run({"-e", "scores=@none.npy"}, 12, "none.npy");
  run({"-o", "y.npy"}, 11, "expected NAME=@FILE");
  const auto given = [&](const char* image, const char* mask, int exit_code, const std::string& text) {
    session.Refused("vm-run", {"model.rwx", "-i", image, "-i", mask}, exit_code, text);
  };
  given("image=2x3xf64=1", "mask=2xi64=0", 11, "f32[2, 3] expected, f64[2, 3] given");
  given("image=3x2xf32=1", "mask=2xi64=0", 11, "f32[2, 3] expected, f32[3, 2] given");
  given("image=2x3xf99=1", "mask=2xi64=0", 11, "f99");
  given("image=2x3xf32=1,2", "mask=2xi64=0", 11, "2 numbers for f32[2, 3], expected 6");
  given("image=", "mask=2xi64=0", 11, "");
  given("image=@none.npy", "mask=2xi64=0", 12, "none.npy");
  given("image=2x3xf32=1", "mask=1000000000000000xi64=0", 11, "a tensor of ");
  session.Refused("vm-run", {"model.rwx", "--random", "--dim", "N=1000000000000000"}, 25, "a tensor of ");
  session.Refused("vm-run", {"model.rwx", "--random", "--dim", "N=-1"}, 11, "expected NAME=SIZE");
  session.Refused("vm-run", {"model.rwx"}, 11, "input 'image' (f32[2, 3]) of function main is not given");
  session.Refused("vm-run", {"model.rwx", "--random"}, 11, "write --dim N=SIZE");

  const auto debug = [&](const std::string& command, int exit_code, const std::string& text) {
    session.folder().Write("wrong", "start\n" + command + "\n");
    session.Refused("vm-debug", {"model.rwx", "--random", "--dim", "N=1", "-x", "wrong"}, exit_code, text);
  };
  debug("braek main", 12, "wrong:2: no command is called 'braek'; did you mean 'break'?");
  debug("print %99", 12, "main has no register '99'");
  debug("save image /dev/full", 13, "cannot write '/dev/full': No space left on device");
  debug("save image model.rwx", 11, "the output 'model.rwx' is the file 'model.rwx'");

  session.folder().Write("wrong.asm", ".func main(x: value) -> y: value\nrett %x\n.end\n");
  session.folder().Write("unsafe.asm", ".func main() -> y: value\n.registers 1\nret %0\n.end\n");
  session.Refused("vm-as", {"wrong.asm"}, 11,
                  "wrong.asm:2:1: unknown instruction 'rett'; did you mean 'ret'?");
  session.Refused("vm-as", {"unsafe.asm"}, 16, "register %0 is undefined");
  session.Refused("vm-as", {"-"}, 11, "needs --output");
  session.Refused("vm-bundle", {"a=model.rwx", "a=model.rwx", "-o", "out.rwx"}, 11, "a");
  session.Refused("vm-convert", {"model.rwx", "-o", "out.rwx"}, 11, "already");
  session.Refused("vm-convert", {"model.ro", "--params", "w.npz", "-o", "out.rwx"}, 11, "--params");
  session.Refused("vm-inspect", {"model.rwx", "--function", "main"}, 11, "--memory");
  session.Refused("vm-inspect", {"model.rwx", "--memory", "--function", "mian"}, 12, "did you mean 'main'?");
  session.Refused("vm-inspect", {"model.rwx", "--memory", "--max-dim", "M=4"}, 11,
                  "no signature has a dimension");
  session.Refused("vm-params", {"convert", "w.npz", "-o", "w.txt"}, 11, "w.txt");
  session.Refused("vm-params", {"compress", "model.rwx", "-o", "out.rwx", "--level", "23"}, 11, "--level");
  session.Refused("vm-params", {"lsit", "w.npz"}, 11, "did you mean 'list'?");
  if (!HasCompiler()) return;
  const auto compile = [&](std::vector<std::string> more, int exit_code, const std::string& text) {
    more.insert(more.begin(), {"model.onnx", "-o", "out.rwx"});
    session.Refused("vm-compile", more, exit_code, text);
  };
  compile({"--disable-pass", "fold-constnats"}, 11, "did you mean 'fold-constants'?");
  compile({"--dim", "M=4"}, 11, "M");
  compile({"--dim", "N=four"}, 11, "expected NAME=SIZE");
  // Such a program may exist; no machine can run it.
  REQUIRE(
      session.Run("vm-compile", {"model.onnx", "-o", "large.rwx", "--dim", "N=1000000000000000"}).exit_code ==
      0);
  session.Refused("vm-run", {"large.rwx", "--random"}, 25, "a tensor of ");
  compile({"--device", "cpus"}, 11, "did you mean 'cpu'? The devices: cpu, opencl, cuda");
  compile({"--precision", "int4"}, 11,
          "--precision: there is no choice 'int4'; did you mean 'int8'? The choices: model, int8, bf16");
  compile({"--fold-time", "5"}, 11, "--fold-time: '5' is no time");
  compile({"--calibrate", "none.npz", "--precision", "int8"}, 12, "none.npz");
}

TEST_CASE("models and weights of other frameworks are told by their names, with what to do") {
  const MistakeSession session;
  for (const char* extension : {".pt", ".pth", ".pt2", ".pb", ".h5", ".keras", ".gguf", ".safetensors"}) {
    const std::string name = std::string("other") + extension;
    session.folder().Write(name, "whatever is in it");
    const bool are_weights = name == "other.gguf" || name == "other.safetensors";
    const std::string text = name + (are_weights ? ": these are " : ": this is ");
    session.Refused("vm-run", {name, "--random"}, 15, text);
    session.Refused("vm-run", {"none" + std::string(extension)}, 12, "No such file");
    if (HasCompiler()) session.Refused("vm-compile", {name}, 15, text);
    if (HasCompiler()) session.Refused("vm-compile", {"none" + std::string(extension)}, 12, "No such file");
    // An executable is one whatever it is called.
    session.folder().Write(name, session.Content("model.rwx"));
    CHECK(session.Run("vm-run", {name, "--list"}).exit_code == 0);
  }
}

TEST_CASE("settings of the C++ interface are named as options") {
  const MistakeSession session;
  const std::vector<std::string> works = {"model.rwx", "-i", "image=2x3xf32=1", "-i", "mask=2xi64=0"};
  const auto refused = [&](const char* option, const char* value, int exit_code) {
    std::vector<std::string> arguments = works;
    arguments.insert(arguments.end(), {option, value});
    session.Refused("vm-run", arguments, exit_code, option);
    CHECK(session.Run("vm-run", arguments).err.find("::") == std::string::npos);
  };
  refused("--max-bytes", "1K", 22);
  refused("--max-steps", "1", 21);
  session.folder().Write("deep.asm",
                         ".func main(x: f32[2]) -> y: f32[2]\n  %y = invoke main(%x)\n  ret %y\n.end\n");
  session.Refused("vm-run", {"deep.asm", "--random"}, 20, "raise --max-depth");
}

TEST_CASE("a library in the working folder is found, a file without @ is told, and NaN are counted") {
  const MistakeSession session;
  session.folder().Write("here.so", "no library");
  session.Refused("vm-run", {"model.rwx", "--random", "--dim", "N=1", "--kernels", "here.so"}, 14,
                  "here.so': not a shared library");
  session.folder().Write("image.npy", "");
  session.Refused("vm-run", {"model.rwx", "-i", "image=image.npy"}, 11, "write @image.npy for the file");
  const Finished nan = session.Run("vm-run", {"same.asm", "-i", "x=2xf32=nan,1"});
  CHECK_THAT(nan.out, Catch::Contains("w: 1 NaN; `catch nan` of vm-debug"));
  CHECK(session.Run("vm-run", {"same.asm", "-i", "x=2xf32=inf,1"}).out.find("NaN") == std::string::npos);
  const json object = json::parse(session.Run("vm-run", {"same.asm", "-i", "x=2xf32=nan,nan", "--json"}).out);
  CHECK(object["outputs"][0]["nan"] == 2);
}

TEST_CASE("who measures or is quiet gets no values") {
  const MistakeSession session;
  const std::vector<std::string> works = {"same.asm", "-i", "x=2xf32=7.25,1"};
  const auto prints = [&](std::vector<std::string> more) {
    more.insert(more.begin(), works.begin(), works.end());
    const Finished finished = session.Run("vm-run", more);
    CHECK(finished.exit_code == 0);
    return finished.out.find("7.25") != std::string::npos;
  };
  CHECK(prints({}));
  CHECK(!prints({"--quiet"}));
  CHECK(!prints({"--repeat", "3"}));
}

TEST_CASE("a weight whose bits have changed is found by --verify-data") {
  const MistakeSession session;
  session.folder().Write("weights.asm",
                         ".const w: f32[4] = {1, 2, 3, 5.5}\n.func main() -> y: f32[4]\n  %w = load_const w\n"
                         "  ret %w\n.end\n");
  REQUIRE(session.Run("vm-as", {"weights.asm"}).exit_code == 0);
  std::string content = session.Content("weights.rwx");
  const std::size_t at = content.find(std::string("\x00\x00\xb0\x40", 4));  // 5.5
  REQUIRE(at != std::string::npos);
  content[at + 1] = 1;
  session.folder().Write("changed.rwx", content);
  CHECK(session.Run("vm-run", {"changed.rwx"}).exit_code == 0);
  session.Refused("vm-run", {"changed.rwx", "--verify-data"}, 14, "is damaged");
  CHECK(session.Run("vm-run", {"weights.rwx", "--verify-data"}).exit_code == 0);
}

TEST_CASE("a model for a device has the device in its name") {
  if (!HasCompiler()) return;
  const MistakeSession session;
  REQUIRE(session.Run("vm-compile", {"model.onnx"}).exit_code == 0);
  const std::string before = session.Content("model.rwx");
  const Finished other = session.Run("vm-compile", {"model.onnx", "--device", "opencl"});
  CHECK(session.Content("model.rwx") == before);
  if (other.exit_code == 0) CHECK(fs::exists(session.folder().path() / "model.opencl.rwx"));
}

TEST_CASE("an operator that the compiler does not know is named, with the model's node") {
  if (!HasCompiler()) return;
  const MistakeSession session;
  const Finished finished = session.Run("vm-compile", {"unknown.onnx", "-o", "out.rwx"});
  CHECK(finished.exit_code == 15);
  CHECK_THAT(finished.err, Catch::Contains("Nonsense"));
  const json object = json::parse(session.Run("vm-compile", {"unknown.onnx", "-o", "out.rwx", "--json"}).out);
  CHECK(object["error"]["code"] == 5);
  CHECK(object["error"]["name"] == "unsupported");
  CHECK(object["unsupported"][0]["node"] == "only");
}

TEST_CASE("an interrupted tool says so, ends by the signal, and leaves nothing behind") {
  const MistakeSession session;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Streams streams;
    streams.signal = signal;
    for (const bool as_json : {false, true}) {
      std::vector<std::string> more;
      if (as_json) more.emplace_back("--json");
      streams.in_waits = false;
      std::vector<std::string> run = {"endless.asm", "-o", "y=@y.npy"};
      run.insert(run.end(), more.begin(), more.end());
      const Finished endless = session.Run("vm-run", run, streams);
      CHECK(endless.exit_code == 128 + signal);
      CHECK_THAT(endless.err, Catch::Contains("the run was cancelled") || Catch::Contains("interrupted"));
      CHECK(std::count(endless.err.begin(), endless.err.end(), '\n') == 1);
      if (as_json) CHECK(json::parse(endless.out)["error"]["name"] == "cancelled");

      streams.in_waits = true;  // for a text that does not come
      std::vector<std::string> as = {"-", "-o", "out.rwx"};
      as.insert(as.end(), more.begin(), more.end());
      const Finished waits = session.Run("vm-as", as, streams);
      CHECK(waits.exit_code == 128 + signal);
      CHECK(waits.err == "vm-as: error: interrupted\n");
      if (as_json) CHECK(json::parse(waits.out)["error"]["name"] == "cancelled");
    }
  }
  CHECK(!fs::exists(session.folder().path() / "y.npy"));
  CHECK(!fs::exists(session.folder().path() / "out.rwx"));
  CHECK(session.Unfinished().empty());
}

TEST_CASE("an interrupted measurement prints what was measured") {
  const MistakeSession session;
  const test::TerminalSession terminal = test::RunAtTerminal(
      "vm-run", {"model.rwx", "--random", "--dim", "N=1", "--repeat", "4000000000", "--profile"},
      session.folder().path(), {{" of 4000000000", ""}, {" of 4000000000", "\x03"}});
  CHECK(terminal.exit_code == 128 + SIGINT);
  CHECK_THAT(terminal.screen, Catch::Contains(" runs after 1 to warm up: median "));
  CHECK_THAT(terminal.screen, Catch::Contains("profile:"));
  CHECK_THAT(terminal.screen, Catch::Contains("cancelled") || Catch::Contains("interrupted after "));
}

}  // namespace
}  // namespace rewire::tools
