// SPDX-License-Identifier: Apache-2.0
// Wrong input of each kind to vm-run: one clear message on stderr, nothing on stdout, and the kind's exit
// code.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/layout.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

constexpr const char kWrongProgram[] = R"(
.kernel relu = "rewire.relu"
.func main(image: f32[2, 3], mask: i64[N]) -> scores: f32[2, 3]
  %storage = alloc_storage _, alignment=64, f32[2, 3], cpu
  %scores = alloc_tensor %storage, _, f32[2, 3]
  invoke_packed relu(%image, %scores), outputs=1
  ret %scores
.end
)";

constexpr const char kForeignKernels[] = R"(
.kernel gelu = "rewire.leaky_rel"
.kernel mine = "mine.attention"
.func main() -> x: integer
  invoke_packed gelu(), outputs=0
  invoke_packed mine(), outputs=0
  %x = load_consti 1
  ret %x
.end
)";

constexpr const char kParameters[] = R"(
.param weight: f32[2]
.param bias: f32[2]
.func main() -> x: f32[2]
  %x = load_const weight
  %x = load_const bias
  ret %x
.end
)";

struct Row {
  const char* what;
  std::vector<std::string> arguments;
  int exit_code;
  std::string message;
};

// The arguments of a run that works, for rows that spoil it with one more.
std::vector<std::string> Works(std::vector<std::string> more) {
  more.insert(more.begin(), {"model.rwx", "-i", "image=2x3xf32=1", "-i", "mask=2xi64=0"});
  return more;
}

std::vector<Row> Rows() {
  return {
      {"nothing", {}, 11, "FILE is required; vm-run --help lists the options"},
      {"no file", {"no.rwx"}, 12, "cannot open 'no.rwx': No such file or directory"},
      {"not an executable",
       {"text.rwx"},
       14,
       "text.rwx: this is not a Rewire executable, which begins with the bytes 89 'RWX'; vm-compile makes "
       "one of an ONNX model, vm-as of text assembly, vm-convert of a model of TVM"},
      {"cut off", {"cut.rwx"}, 14, "cut.rwx: the file is cut off: its header says SIZE bytes, it has 100"},
      {"newer version",
       {"newer.rwx"},
       15,
       "newer.rwx: the file has format version 9.0, this library reads version 1.x: use a newer library"},
      {"wrong text", {"wrong.asm"}, 11, "wrong.asm:2:1: unknown instruction 'rett'; did you mean 'ret'?"},
      {"breaks a rule", {"unsafe.asm"}, 16, "unsafe.asm: main@0 (ret %0): register %0 is undefined"},
      {"missing input",
       {"model.rwx", "-i", "image=2x3xf32=1"},
       11,
       "input 'mask' (i64[N]) of function main is not given; write --input mask=@FILE, or --random"},
      {"wrong name of an input",
       {"model.rwx", "-i", "imgae=2x3xf32=1"},
       12,
       "--input: function main has no input 'imgae'; did you mean 'image'? The inputs: image, mask"},
      {"wrong index of an input",
       {"model.rwx", "-i", "2=2x3xf32=1"},
       12,
       "--input: function main has no input 2: it has 2, counted from 0"},
      {"input given twice", Works({"-i", "0=2x3xf32=1"}), 11, "input 'image' is given twice; leave one out"},
      {"wrong name of an output", Works({"-o", "scors=@y.npy"}), 12,
       "--output: function main has no output 'scors'; did you mean 'scores'?"},
      {"wrong name of a function", Works({"-f", "mian"}), 12,
       "model.rwx: the executable has no function named \"mian\"; did you mean 'main'?"},
      {"wrong name of an option", Works({"--repaet", "4"}), 11,
       "unexpected argument '--repaet'; did you mean '--repeat' or '--report'?"},
      {"wrong value of an option", Works({"--repeat", "0"}), 11,
       "--repeat: expected a whole number of at least 1, given '0'"},
      {"wrong size", Works({"--max-bytes", "5X"}), 11,
       "--max-bytes: '5X' is no size in bytes: expected a number such as 4096, 64K, 64M or 2G"},
      {"wrong time", Works({"--deadline", "5"}), 11,
       "--deadline: '5' is no time: expected a number and a unit, such as 2s, 250ms or 80us"},
      {"wrong dtype",
       {"model.rwx", "-i", "image=2x3xf64=1", "-i", "mask=2xi64=0"},
       11,
       "function main, input 0 (image): f32[2, 3] expected, f64[2, 3] given"},
      {"wrong shape",
       {"model.rwx", "-i", "image=3x2xf32=1", "-i", "mask=2xi64=0"},
       11,
       "function main, input 0 (image): f32[2, 3] expected, f32[3, 2] given"},
      {"wrong kind",
       {"model.rwx", "-i", "image=(2x3xf32=1)", "-i", "mask=2xi64=0"},
       11,
       "function main, input 0 (image): f32[2, 3] expected, an ADT given"},
      {"size of a dimension unknown",
       {"model.rwx", "--random"},
       11,
       "input 'mask' (i64[N]): --random does not know the size of every dimension; write --dim N=SIZE"},
      {"no such dimension",
       {"model.rwx", "--random", "--dim", "M=3"},
       12,
       "--dim: no symbolic dimension is called 'M'; the symbolic dimensions: N"},
      {"missing kernels",
       {"foreign.asm"},
       17,
       "foreign.asm: kernels could not be resolved:\n"
       "  kernel 'rewire.leaky_rel' is not in: librewire_kernels_cpu.so (tvm-ffi ABI); did you mean "
       "'rewire.leaky_relu'?\n"
       "  kernel 'mine.attention' is not in: librewire_kernels_cpu.so (tvm-ffi ABI)"},
      {"missing library", Works({"--kernels", "libnone.so"}), 12,
       "kernel library 'libnone.so' was not found; tried BUILD/lib/rewire/libnone.so, "
       "BUILD/bin/rewire/libnone.so, "
       "BUILD/bin/../lib/rewire/libnone.so, and the system's libraries (libnone.so: cannot open shared "
       "object "
       "file: No such file or directory)"},
      {"not a library", Works({"--kernels", "./lib.so"}), 14,
       "kernel library 'FOLDER/lib.so': not a shared library: it does not begin as an ELF file does; link "
       "one with -shared"},
      {"missing parameters",
       {"params.asm"},
       17,
       "params.asm: parameters do not match:\n"
       "  weight: no parameter of this name given, f32[2] expected\n"
       "  bias: no parameter of this name given, f32[2] expected"},
      {"unreadable npy",
       {"model.rwx", "-i", "image=@bad.npy"},
       14,
       "input 'image': bad.npy: not an .npy file, which begins with \\x93NUMPY; use numpy.save to write one"},
      {"missing npy",
       {"model.rwx", "-i", "image=@none.npy"},
       12,
       "input 'image': cannot open 'none.npy': No such file or directory"},
      {"missing expectation", Works({"-e", "scores=@none.npy"}), 12,
       "cannot open 'none.npy': No such file or directory"},
      {"disk full", Works({"-o", "scores=@/dev/full"}), 13,
       "cannot write '/dev/full': No space left on device"},
      {"no such folder", Works({"-o", "scores=@none/y.npy"}), 13,
       "cannot write 'none/y.npy': No such file or directory"},
  };
}

std::string Replace(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

TEST_CASE("wrong input: message and exit code") {
  const test::TempFolder folder;
  folder.Write("model.asm", kWrongProgram);
  folder.Write("foreign.asm", kForeignKernels);
  folder.Write("params.asm", kParameters);
  folder.Write("wrong.asm", ".func main(x: value) -> y: value\nrett %x\n.end\n");
  folder.Write("unsafe.asm", ".func main() -> y: value\n.registers 1\nret %0\n.end\n");
  folder.Write("text.rwx", "this is no executable");
  folder.Write("bad.npy", "neither is this an array");
  folder.Write("lib.so", "nor this a library");
  REQUIRE(test::RunProgram("vm-as", {"model.asm"}, folder.path()).exit_code == 0);
  std::string newer = test::ReadWholeFile(folder.path() / "model.rwx");
  newer[kMagic.size()] = 9;  // the major version
  folder.Write("newer.rwx", newer);
  const std::string whole = test::ReadWholeFile(folder.path() / "model.rwx");
  folder.Write("cut.rwx", whole.substr(0, 100));

  for (const Row& row : Rows()) {
    INFO(row.what);
    const test::Finished finished = test::RunProgram("vm-run", row.arguments, folder.path());
    std::string message = Replace(finished.err, test::BuildDir(), "BUILD");
    message = Replace(message, folder.path().string(), "FOLDER");
    message = Replace(message, std::to_string(whole.size()), "SIZE");
    CHECK(message == "vm-run: error: " + row.message + "\n");
    CHECK(finished.exit_code == row.exit_code);
    CHECK(finished.out.empty());
  }
}

TEST_CASE("standard output that is full is an error") {
  const test::TempFolder folder;
  folder.Write("model.asm", kWrongProgram);
  test::Streams streams;
  streams.out = "/dev/full";
  const test::Finished finished =
      test::RunProgram("vm-run", {"model.asm", "--random", "--dim", "N=1"}, folder.path(), streams);
  CHECK(finished.err == "vm-run: error: cannot write standard output: No space left on device\n");
  CHECK(finished.exit_code == 13);
}

}  // namespace
}  // namespace rewire::tools
