// SPDX-License-Identifier: Apache-2.0
// vm-run --against where ONNX Runtime is not there, or cannot be asked. tests/models/against.py asks it.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using test::Finished;

constexpr const char kNamed[] = R"(
.metadata "values main.0" "[[0, 0, \"x\"]]"
.metadata "input strings texts.0" "{\"offsets\": 1, \"bytes\": 2}"
.func main(x: f32[2]) -> y: f32[2]
  ret %x
.end
.func tree(x: value) -> y: value
  ret %x
.end
.func texts(x: i64[1], "x.offsets": i64[2], "x.bytes": u8[1]) -> y: i64[1]
  ret %x
.end
)";

class Session {
 public:
  Session() {
    folder_.Write("named.asm", kNamed);
    folder_.Write("plain.asm", ".func main(x: f32[2]) -> y: f32[2]\n  ret %x\n.end\n");
  }
  // A program that --python can name.
  void Script(const std::string& name, const std::string& line) const {
    folder_.Write(name, "#!/bin/sh\n" + line + "\n");
    std::filesystem::permissions(folder_.path() / name, std::filesystem::perms::owner_all);
  }
  Finished Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--against", "model.onnx"});
    return test::RunProgram("vm-run", arguments, folder_.path());
  }

 private:
  test::TempFolder folder_;
};

TEST_CASE("where ONNX Runtime is missing, one error says how to get it") {
  const Session session;
  session.Script("bare", "exec python3 -I -S \"$@\"");  // without any package
  const Finished missing = session.Run({"named.asm", "--random", "--python", "./bare"});
  CHECK(missing.exit_code == 12);
  CHECK(missing.out.empty());
  CHECK(missing.err ==
        "vm-run: error: --against needs the packages onnx and onnxruntime, and ./bare does not have 'numpy': "
        "install "
        "them with `./bare -m pip install onnx onnxruntime`, or name another Python with --python\n");
  const Finished none = session.Run({"named.asm", "--random", "--python", "no-such-python"});
  CHECK(none.exit_code == 12);
  CHECK(none.err ==
        "vm-run: error: --against needs a Python with ONNX Runtime, and 'no-such-python' cannot be started: "
        "No such "
        "file or directory; --python names another one\n");
  session.Script("ends", "exit 3");
  const Finished ended = session.Run({"named.asm", "--random", "--python", "./ends"});
  CHECK(ended.exit_code == 18);
  CHECK(ended.err ==
        "vm-run: error: ./ends ended with exit status 3 before it had computed values of model.onnx\n");
  session.Script("killed", "kill -9 $$");
  CHECK_THAT(session.Run({"named.asm", "--random", "--python", "./killed"}).err,
             Catch::Contains("./killed ended with signal 9 before"));
}

TEST_CASE("what cannot be compared is refused before anything is started") {
  const Session session;
  const Finished plain = session.Run({"plain.asm", "--random"});
  CHECK(plain.exit_code == 11);
  CHECK(plain.err ==
        "vm-run: error: the executable does not say which of its values are the model's; compile it again, "
        "or give "
        "the map of names if it was stripped (--map)\n");
  const Finished tree = session.Run({"named.asm", "-f", "tree", "-i", "x=(f32=1,f32=2)"});
  CHECK(tree.exit_code == 11);
  CHECK_THAT(tree.err, Catch::StartsWith("vm-run: error: input 'x' is ") &&
                           Catch::Contains("--against can give only tensors of numbers to ONNX Runtime"));
  const Finished texts = session.Run({"named.asm", "-f", "texts", "--random"});
  CHECK(texts.exit_code == 11);
  CHECK_THAT(texts.err, Catch::StartsWith("vm-run: error: input 'x' is strings: --against "));
  const Finished both = session.Run({"named.asm", "--random", "--expect", "y=f32=1"});
  CHECK(both.exit_code == 11);
  CHECK_THAT(both.err, Catch::Contains("--expect"));
}

}  // namespace
}  // namespace rewire::tools
