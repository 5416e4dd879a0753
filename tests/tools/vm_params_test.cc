// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/parameter_set.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::json;
using test::Finished;
using test::TempFolder;

constexpr const char kWeights[] = R"(
.const w: f32[2, 3] = {1, 2, 3, 4, 5, 6}
.const flags: bool[2] = {true, false}
.const zeros: f32[1000] = fill 0
.func main() -> y: f32[2, 3]
  %w = load_const w
  ret %w
.end
)";

Finished Params(const TempFolder& folder, const std::vector<std::string>& arguments) {
  return test::RunProgram("vm-params", arguments, folder.path());
}

void Good(const Finished& finished) {
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
}

// A folder with model.rwx.
struct Models : TempFolder {
  Models() {
    Write("model.asm", kWeights);
    Good(test::RunProgram("vm-as", {"model.asm"}, path()));
  }
};

TEST_CASE("vm-params converts between all formats without a change") {
  const Models folder;
  std::string from = "model.rwx";
  for (const char* to : {"a.safetensors", "b.params", "c.npz", "d.rwx", "e.params", "f.safetensors"}) {
    CAPTURE(to);
    const Finished converted = Params(folder, {"convert", from, "--output", to});
    Good(converted);
    CHECK(converted.out == std::string("wrote ") + to + ": 3 parameters\n");
    from = to;
  }
  CHECK(test::ReadWholeFile(folder.path() / "a.safetensors") ==
        test::ReadWholeFile(folder.path() / "f.safetensors"));
  CHECK(test::ReadWholeFile(folder.path() / "b.params") == test::ReadWholeFile(folder.path() / "e.params"));
  const ParameterSet set = *ParameterSet::Open((folder.path() / "e.params").string());
  REQUIRE(set.size() == 3);
  CHECK((set.dtype(0) == kBool8));
  CHECK(set.TryGet(1)->data<float>()[5] == 6);
}

TEST_CASE("vm-params lists names, types, sizes and codecs") {
  const Models folder;
  Good(Params(folder, {"compress", "model.rwx", "--output", "small.rwx"}));
  const Finished text = Params(folder, {"list", "small.rwx"});
  Good(text);
  CHECK(text.out.find("small.rwx: 3 parameters, 3.9 KiB\n") == 0);
  CHECK(text.out.find("  w      f32[2, 3]     24 B    24 B  none\n") != std::string::npos);
  const Finished list = Params(folder, {"list", "small.rwx", "model.rwx", "--json"});
  Good(list);
  const Json json = Json::parse(list.out);
  REQUIRE(json["files"].size() == 2);
  const Json& zeros = json["files"][0]["parameters"][2];
  CHECK(zeros["name"] == "zeros");
  CHECK(zeros["dtype"] == "f32");
  CHECK(zeros["shape"] == Json::parse("[1000]"));
  CHECK(zeros["bytes"] == 4000);
  CHECK(zeros["stored_bytes"] < 100);
  CHECK(zeros["codec"] == "zstd");
  CHECK(json["files"][1]["parameters"][2]["stored_bytes"] == 4000);
}

TEST_CASE("vm-params compresses models, which run as before") {
  const Models folder;
  const Finished compressed =
      Params(folder, {"compress", "model.rwx", "-o", "small.rwx", "--level", "19", "--json"});
  Good(compressed);
  CHECK(Json::parse(compressed.out)["saved_bytes"] > 3900);
  const Finished run = test::RunProgram("vm-run", {"small.rwx", "--json"}, folder.path());
  Good(run);
  CHECK(Json::parse(run.out)["outputs"][0]["data"] == Json::parse("[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"));
  Good(Params(folder, {"convert", "small.rwx", "--output", "p.rwx", "--level", "3"}));
  const Finished list = Params(folder, {"list", "p.rwx", "--json"});
  CHECK(Json::parse(list.out)["files"][0]["parameters"][2]["codec"] == "zstd");
}

TEST_CASE("vm-params: wrong inputs, each with its message and exit code") {
  const Models folder;
  folder.Write("no.safetensors", "hello");
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
  } rows[] = {
      {{}, 11, "a command is required; the commands: list, convert, compress"},
      {{"lst", "model.rwx"},
       11,
       "there is no command 'lst'; did you mean 'list'? The commands: list, convert, compress"},
      {{"convert", "model.rwx", "--ouput", "x.rwx"},
       11,
       "unexpected argument '--ouput'; did you mean '--output'?"},
      {{"list", "none.rwx"}, 12, "cannot open 'none.rwx': No such file or directory"},
      {{"list", "no.safetensors"},
       14,
       "no.safetensors: not a .safetensors file, or it ends inside its header; safetensors.numpy.save_file "
       "writes one"},
      {{"convert", "model.rwx"}, 11, "--output is required; vm-params --help lists the options"},
      {{"convert", "model.rwx", "-o", "x.txt"},
       11,
       "cannot tell the format of 'x.txt': expected .safetensors, .rwx, .npz or .params (TVM's) at its end"},
      {{"convert", "model.rwx", "-o", "x.npz", "--level", "3"},
       11,
       "only .rwx files are compressed, not 'x.npz'"},
      {{"convert", "model.rwx", "model.rwx", "-o", "x.rwx"},
       11,
       "both model.rwx and model.rwx have a parameter called 'flags'"},
      {{"convert", "model.rwx", "-o", "gone/x.rwx"},
       13,
       "cannot write 'gone/x.rwx': No such file or directory"},
      {{"compress", "no.safetensors", "-o", "x.rwx"},
       15,
       "no.safetensors: these are weights without a graph; give the model as FILE and this as --params of "
       "vm-run"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.message);
    const Finished finished = Params(folder, row.arguments);
    CHECK(finished.exit_code == row.exit_code);
    CHECK(finished.err == "vm-params: error: " + row.message + "\n");
    CHECK(finished.out.empty());
  }
  CHECK(Params(folder, {"compress", "model.rwx", "-o", "x.rwx", "--level", "0"}).exit_code == 11);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().filename().string().substr(0, 2) != "x.");
  }
}

TEST_CASE("vm-run binds parameters of every format") {
  const Models folder;
  folder.Write(
      "uses.asm",
      ".param w: f32[2, 3]\n.param flags: bool[2]\n.param zeros: f32[1000]\n.func main() -> y: f32[2, 3]\n"
      "%w = load_const w\nret %w\n.end\n");
  Good(Params(folder, {"convert", "model.rwx", "--output", "a.safetensors"}));
  Good(Params(folder, {"convert", "model.rwx", "--output", "b.params"}));
  Good(Params(folder, {"compress", "model.rwx", "--output", "c.rwx"}));
  for (const char* file : {"a.safetensors", "b.params", "c.rwx"}) {
    CAPTURE(file);
    const Finished run = test::RunProgram("vm-run", {"uses.asm", "--params", file, "--json"}, folder.path());
    Good(run);
    CHECK(Json::parse(run.out)["outputs"][0]["data"][5] == 6.0);
  }
}

constexpr const char kDouble[] = R"(
.kernel add = "rewire.add"
.func main(x: f32[N]) -> (y: f32[N], same: f32[N])
  %bytes = load_consti 4096
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %shape = shape_of %x
  %zero = load_consti 0
  %y = alloc_tensor_reg %s, %zero, %shape, f32
  invoke_packed add(%x, %x, %y), outputs=1
  %r = alloc_adt tag=0 (%y, %x)
  ret %r
.end
)";

TEST_CASE("vm-run has kernels write an output straight into its file") {
  const TempFolder folder;
  folder.Write("double.asm", kDouble);
  const Finished run = test::RunProgram("vm-run",
                                        {"double.asm", "-i", "x=5xf32=1,2,3,4,5", "-o", "y=@y.npy", "-o",
                                         "same=@same.npy", "--json", "--repeat", "3"},
                                        folder.path());
  Good(run);
  const Json json = Json::parse(run.out);
  CHECK(json["outputs"][0]["in_place"] == true);
  CHECK(json["outputs"][1]["in_place"] == false);  // an input: copied, into the file
  CHECK(json["written"] == Json::parse(R"(["y.npy", "same.npy"])"));
  const Result<HostTensor> y = ReadNpy((folder.path() / "y.npy").string());
  REQUIRE(y.has_value());
  CHECK(y->shape == std::vector<std::int64_t>{5});
  CHECK(reinterpret_cast<const float*>(y->bytes.view.data())[4] == 10);
  CHECK(reinterpret_cast<const float*>(
            ReadNpy((folder.path() / "same.npy").string())->bytes.view.data())[4] == 5);
  // The same bytes as those of a writer that knows the whole tensor.
  CHECK(test::ReadWholeFile(folder.path() / "y.npy").size() == 128 + 20);
  // Nothing else is left, also not by a run that fails.
  const Finished failed = test::RunProgram(
      "vm-run", {"double.asm", "-i", "x=5xf32=1", "-o", "y=@z.npy", "--max-steps", "3"}, folder.path());
  CHECK(failed.exit_code == 21);
  const Finished nowhere =
      test::RunProgram("vm-run", {"double.asm", "-i", "x=5xf32=1", "-o", "y=@gone/z.npy"}, folder.path());
  CHECK(nowhere.exit_code == 13);
  CHECK(nowhere.err == "vm-run: error: cannot write 'gone/z.npy': No such file or directory\n");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"double.asm", "same.npy", "y.npy"});
}

}  // namespace
}  // namespace rewire::tools
