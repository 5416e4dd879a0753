// SPDX-License-Identifier: Apache-2.0
// Models of TVM, written by hand here, through vm-run, vm-convert and vm-inspect; and what cannot be run,
// with the message that says what it is and what to do. tests/tvm has files that TVM itself made.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/executable.h"
#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using nlohmann::json;
using test::Finished;
using tvm::RelaySpec;

// Opcodes of TVM's VM.
enum : std::int64_t { kRet = 1, kInvokePacked = 4, kAllocTensor = 5, kAllocAdt = 7, kLoadConst = 11 };
enum : std::int64_t { kAllocStorage = 16 };

RelaySpec::Constant Floats(const std::string& name, const std::vector<float>& values) {
  RelaySpec::Constant constant;
  constant.name = name;
  constant.dtype = kFloat32;
  constant.shape = {static_cast<std::int64_t>(values.size())};
  constant.elements.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return constant;
}

// (x + w, w), where w is bound when the program is linked. The addition is a stock kernel.
RelaySpec AddLateBound() {
  RelaySpec spec;
  spec.kernels = {"rewire.add"};
  spec.constants = {tvm::Scalar64(0), Floats("w", {})};
  spec.functions.push_back({"main",
                            "16",
                            {"x"},
                            {{kAllocStorage, 0, 64, 2, 32, 1, 0, 1, 1, 2},
                             {kLoadConst, 0, 0, 2},
                             {kAllocTensor, 1, 2, 2, 32, 1, 1, 3, 2},
                             {kLoadConst, 1, 0, 4},
                             {kInvokePacked, 0, 3, 1, 0, 4, 3},
                             {kAllocAdt, 0, 2, 5, 3, 4},
                             {kRet, 5}},
                            ""});
  return spec;
}

std::string ParameterList(const std::string& name, const RelaySpec::Constant& tensor) {
  tvm::StreamWriter out;
  out.Put(std::uint64_t{0xF7E58D4F05049CB7});
  out.Put(std::uint64_t{0});
  out.Strings({name});
  out.Count(1);
  out.Tensor(tensor.dtype, tensor.shape, tensor.elements);
  return out.bytes();
}

constexpr char kGraph[] = R"({
  "nodes": [{"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "w", "inputs": []},
            {"op": "tvm_op", "name": "sum", "attrs": {"func_name": "rewire.add"},
             "inputs": [[0, 0, 0], [1, 0, 0]]}],
  "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3],
  "attrs": {"dltype": ["list_str", ["float32", "float32", "float32"]],
            "storage_id": ["list_int", [0, 1, 2]],
            "shape": ["list_shape", [[2], [2], [2]]]}})";

class ForeignSession {
 public:
  ForeignSession() {
    folder_.Write("model.ro", WriteRelay(AddLateBound()));
    folder_.Write("graph.json", kGraph);
    folder_.Write("w.params", ParameterList("w", Floats("", {10, 20})));
  }
  Finished Run(const std::string& tool, const std::vector<std::string>& arguments) const {
    return test::RunProgram(tool, arguments, folder_.path());
  }
  std::string Out(const std::string& tool, const std::vector<std::string>& arguments) const {
    const Finished finished = Run(tool, arguments);
    INFO(finished.err);
    CHECK(finished.exit_code == 0);
    CHECK(finished.err.empty());
    return finished.out;
  }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

std::string Library(const std::string& name) {
  return std::string(test::BuildDir()) + "/tests/libraries/" + name + ".so";
}

TEST_CASE("a Relay VM executable runs, its late-bound constant from TVM's parameter file") {
  const ForeignSession session;
  const std::vector<std::string> run = {"--params", "w.params",
                                        "-i",       "x=2xf32=1,2",
                                        "-e",       "output.0=2xf32=11,22",
                                        "-e",       "output.1=2xf32=10,20"};
  std::vector<std::string> original = run;
  original.insert(original.begin(), "model.ro");
  CHECK(test::Has(session.Out("vm-run", original), "output.1: equals the value expected\n"));

  CHECK(session.Out("vm-convert", {"model.ro"}) ==
        "model.ro: a Relay VM executable of TVM\nwrote model.rwx; run it with\n"
        "  vm-run model.rwx --kernels LIBRARY\n");
  std::vector<std::string> converted = run;
  converted.insert(converted.begin(), "model.rwx");
  CHECK(test::Has(session.Out("vm-run", converted), "output.1: equals the value expected\n"));
}

TEST_CASE("an expected tree is compared with its tags and all its leaves") {
  const ForeignSession session;
  session.folder().Write("tree.asm", ".func main(x: value) -> output: value\n  ret %x\n.end\n");
  const auto run = [&](const std::string& expect) {
    return session.Run("vm-run", {"tree.asm", "-i", "x=(2xf32=11,22,2xf32=10,20)", "-e", expect});
  };
  CHECK(run("output=0(2xf32=11,22,2xf32=10,20)").exit_code == 0);
  const Finished leaf = run("output=(2xf32=11,22,2xf32=10,21)");
  CHECK(leaf.exit_code == 1);
  CHECK(test::Has(leaf.out, "output.1: differs from the value expected in 1 of 2 elements"));
  const Finished tag = run("output=7(2xf32=11,22,2xf32=10,20)");
  CHECK(tag.exit_code == 1);
  CHECK(test::Has(tag.out, "an ADT of 2 fields with tag 7 expected"));
  CHECK(run("output=(2xf32=11,22)").exit_code == 1);
  CHECK(run("output=2xf32=1").exit_code == 11);
}

TEST_CASE("a graph runs with its parameters, which conversion puts inside") {
  const ForeignSession session;
  const std::vector<std::string> run = {"-i", "x=2xf32=1,2", "-e", "sum=2xf32=11,22"};
  std::vector<std::string> original = {"graph.json", "--params", "w.params"};
  original.insert(original.end(), run.begin(), run.end());
  CHECK(session.Out("vm-run", original) == "sum: equals the value expected\n");
  const json report = json::parse(session.Out(
      "vm-convert", {"graph.json", "--params", "w.params", "--output", "converted.rwx", "--json"}));
  CHECK(report["kind"] == "a graph-executor artifact of TVM");
  CHECK(report["written"] == "converted.rwx");
  CHECK(report["kernels"][0]["name"] == "rewire.add");
  CHECK(report["constants"][0]["name"] == "w");
  std::vector<std::string> converted = run;
  converted.insert(converted.begin(), "converted.rwx");
  CHECK(session.Out("vm-run", converted) == "sum: equals the value expected\n");
}

TEST_CASE("a graph in a library that was exported without its parameters takes them from files") {
  const ForeignSession session;
  const std::string library = Library("graph");
  const std::vector<std::string> run = {"-i", "x=2xf32=1,2", "-e", "sum=2xf32=11,22"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), run.begin(), run.end());
    return arguments;
  };
  CHECK(session.Out("vm-run", with({library, "--params", "w.params"})) == "sum: equals the value expected\n");
  session.Out("vm-convert", {library, "--params", "w.params", "-o", "converted.rwx"});
  CHECK(session.Out("vm-run", with({"converted.rwx", "--kernels", library})) ==
        "sum: equals the value expected\n");
  // Without the file what it lacks is an input.
  CHECK(session.Out("vm-run", with({library, "-i", "w=2xf32=10,20"})) == "sum: equals the value expected\n");
  // A file that does not have it either: it is missed.
  session.folder().Write("other.params", ParameterList("v", Floats("", {10, 20})));
  const Finished other = session.Run("vm-run", with({library, "--params", "other.params"}));
  CHECK(other.exit_code != 0);
  CHECK(other.err ==
        "vm-run: error: input 'w' (f32[2]) of function main is not given; write --input w=@FILE, or "
        "--random\n");
}

TEST_CASE("kernels of TVM's target c come from a library without marks, for a graph and for a VM") {
  const ForeignSession session;
  std::string graph = kGraph;
  graph.replace(graph.find("rewire.add"), 10, "tvmgen_default_fused_add");
  session.folder().Write("c.json", graph);
  RelaySpec relay = AddLateBound();
  relay.kernels = {"vm_mod_fused_add"};
  session.folder().Write("c.ro", WriteRelay(relay));
  const std::string library = Library("unmarked");
  CHECK(session.Out("vm-run", {"c.json", "--params", "w.params", "--kernels", library, "-i", "x=2xf32=1,2",
                               "-e", "sum=2xf32=11,22"}) == "sum: equals the value expected\n");
  CHECK(test::Has(session.Out("vm-run", {"c.ro", "--params", "w.params", "--kernels", library, "-i",
                                         "x=2xf32=1,2", "-e", "output.0=2xf32=11,22"}),
                  "output.0: equals the value expected\n"));
}

TEST_CASE("a graph without outputs is explained by an empty list") {
  const ForeignSession session;
  json graph = json::parse(kGraph);
  graph["heads"] = json::array();
  session.folder().Write("none.json", graph.dump());
  CHECK(session.Out("vm-run", {"none.json", "--explain-outputs"}) == "main has no outputs\n");
  const json explained = json::parse(session.Out("vm-run", {"none.json", "--explain-outputs", "--json"}));
  CHECK(explained["outputs"] == json::array());
  CHECK(explained["device_copies"] == json::array());
}

TEST_CASE("vm-inspect shows a foreign model as the program that it becomes") {
  const ForeignSession session;
  const std::string text = session.Out("vm-inspect", {"model.ro"});
  CHECK(test::Has(text,
                  "model.ro: a Relay VM executable of TVM\n"
                  "  source: Relay VM executable of TVM 0.14.0\n\nfunctions: 1\n  main\n"));
  CHECK(test::Has(text, "\nparameters: 1\n  w  "));
  const json report = json::parse(session.Out("vm-inspect", {"graph.json", "--json"}));
  CHECK(report["kind"] == "a graph-executor artifact of TVM");
  CHECK(report["functions"][0]["inputs"][1]["name"] == "w");
}

TEST_CASE("vm-inspect shows what a kernel says of itself") {
  const ForeignSession session;
  CHECK(session.Out("vm-inspect", {Library("documented")}) ==
        Library("documented") + ": documented.so (tvm-ffi ABI)\n\nkernels: 1\n  scale  y = k x  {\"a\":1}\n");
  const json report = json::parse(session.Out("vm-inspect", {Library("documented"), "--json"}));
  CHECK(report["kernels"][0]["documentation"] == "y = k x");
  CHECK(report["kernels"][0]["metadata"] == "{\"a\":1}");
}

struct Refusal {
  const char* what;
  const char* tool;
  std::vector<std::string> arguments;
  int exit_code;
  std::string message;
};

std::vector<Refusal> Refusals() {
  const std::string relax =
      "this is a Relax executable of a current TVM; only Relay VM executables (TVM 0.8 to 0.19) are read. "
      "Compile the model from its source with vm-compile; kernels that TVM compiles can be used as they are";
  const std::string external =
      "the library has a module of kind 'dnnl_json' inside, of an external code generator or for a device "
      "that "
      "is not known; export the model for the CPU, OpenCL or CUDA";
  return {
      {"Relax executable", "vm-run", {"relax.vm"}, 15, "relax.vm: " + relax},
      {"Relax executable in a library", "vm-run", {Library("relax")}, 15, Library("relax") + ": " + relax},
      {"Relax executable to convert", "vm-convert", {"relax.vm"}, 15, "relax.vm: " + relax},
      {"external code generator", "vm-run", {Library("external")}, 15, Library("external") + ": " + external},
      {"external code generator to convert",
       "vm-convert",
       {Library("external"), "-o", "e.rwx"},
       15,
       Library("external") + ": " + external},
      {"kernels of an external code generator",
       "vm-run",
       {"model.ro", "--params", "w.params", "--kernels", Library("external")},
       15,
       "kernel library '" + Library("external") +
           "': it carries modules of the kind 'dnnl_json', for which there is no loader; build it for the "
           "CPU, OpenCL or CUDA, without external code generators"},
      {"a device",
       "vm-run",
       {"metal.ro", "-i", "x=2xf32=1"},
       17,
       "metal.ro: the executable uses devices that are not there:\n  metal:0: no library for it was given"},
      {"numbering of 0.21",
       "vm-run",
       {"model.ro", "--params", "w.params", "--kernels", Library("abi_021")},
       15,
       "kernel library '" + Library("abi_021") +
           "': it speaks the tvm-ffi ABI of TVM 0.21 (it has __tvm_ffi_library_ctx), whose type numbers "
           "differ from all later ones; build it with TVM 0.22 or later"},
      {"numbering of 0.21, inspected",
       "vm-inspect",
       {Library("abi_021")},
       15,
       "kernel library '" + Library("abi_021") +
           "': it speaks the tvm-ffi ABI of TVM 0.21 (it has __tvm_ffi_library_ctx), whose type numbers "
           "differ from all later ones; build it with TVM 0.22 or later"},
      {"kernels as the model",
       "vm-run",
       {Library("documented")},
       11,
       Library("documented") +
           ": this is a shared library: there is no model inside; give the model as FILE and the library as "
           "--kernels"},
      {"parameters as the model",
       "vm-run",
       {"w.params"},
       11,
       "w.params: this is a parameter file of TVM: give the model as FILE and this as --params"},
      {"damaged",
       "vm-convert",
       {"cut.ro", "-o", "cut.rwx"},
       14,
       "cut.ro: Relay VM executable: main@6: the file ends inside an instruction"},
      {"archive of object files",
       "vm-run",
       {"model.tar"},
       15,
       "model.tar: this is compressed by gzip, as TVM compresses its tar archives of object files, which "
       "nothing here "
       "can link; unpack it and make a shared library of them: tar -xf model.tar && cc -shared -o model.so "
       "*.o"},
      {"JSON of something else",
       "vm-run",
       {"other.json"},
       14,
       "other.json: graph: the JSON has no nodes, or node_row_ptr does not have one element more than they"},
      {"late-bound constant not given",
       "vm-run",
       {"model.ro", "-i", "x=2xf32=1,2"},
       17,
       "model.ro: parameters do not match:\n  w: no parameter of this name given, ?[*] expected"},
      {"an executable to convert",
       "vm-convert",
       {"own.rwx", "-o", "other.rwx"},
       11,
       "own.rwx: this is an executable of Rewire already; vm-run runs it"},
      {"text to convert", "vm-convert", {"text.asm"}, 11, "text.asm: vm-as assembles text"},
      {"parameters of a Relay VM executable",
       "vm-convert",
       {"model.ro", "--params", "w.params"},
       11,
       "--params: a Relay VM executable of TVM names its parameters itself, and vm-run binds them; only a "
       "graph needs them here"},
      {"output over the input",
       "vm-convert",
       {"model.ro", "-o", "model.ro"},
       11,
       "the output 'model.ro' is the file 'model.ro', which was read as an input; name another output"},
      {"output that cannot be written",
       "vm-convert",
       {"model.ro", "-o", "none/model.rwx"},
       13,
       "cannot write 'none/model.rwx': No such file or directory"},
      {"no input", "vm-convert", {}, 11, "FILE is required; vm-convert --help lists the options"},
      {"missing input", "vm-convert", {"none.ro"}, 12, "cannot open 'none.ro': No such file or directory"},
  };
}

TEST_CASE("what cannot be run says what it is and what to do") {
  const ForeignSession session;
  const std::string relay = WriteRelay(AddLateBound());
  session.folder().Write("relax.vm", "\x1e" + relay.substr(1));
  session.folder().Write("cut.ro", relay.substr(0, relay.size() - 4));
  session.folder().Write("model.tar", std::string("\x1f\x8b\x08\x01 and so on"));
  session.folder().Write("other.json", "{\"weights\": [1, 2]}");
  session.folder().Write("text.asm", ".func main(x: value) -> y: value\n  ret %x\n.end\n");
  REQUIRE(session.Run("vm-as", {"text.asm", "-o", "own.rwx"}).exit_code == 0);
  RelaySpec metal = AddLateBound();
  metal.devices = {DeviceEntry{}, DeviceEntry{kDLMetal, 0, ""}};
  metal.parameter_device = 1;
  metal.constants[1].device = 1;
  session.folder().Write("metal.ro", WriteRelay(metal));

  for (const Refusal& row : Refusals()) {
    INFO(row.what);
    const Finished finished = session.Run(row.tool, row.arguments);
    CHECK(finished.err == std::string(row.tool) + ": error: " + row.message + "\n");
    CHECK(finished.exit_code == row.exit_code);
    CHECK(finished.out.empty());
  }
}

TEST_CASE("vm-convert writes the whole file or none") {
  const ForeignSession session;
  session.folder().Write("model.rwx", "what was there");
  session.folder().Write("bad.ro", WriteRelay(AddLateBound()).substr(0, 200));
  CHECK(session.Run("vm-convert", {"bad.ro", "-o", "model.rwx"}).exit_code == 14);
  CHECK(test::ReadWholeFile(session.folder().path() / "model.rwx") == "what was there");
  session.Out("vm-convert", {"model.ro"});
  CHECK(Executable::Open((session.folder().path() / "model.rwx").string()).has_value());
}

}  // namespace
}  // namespace rewire::tools
