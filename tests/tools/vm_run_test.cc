// SPDX-License-Identifier: Apache-2.0
// vm-run as a user meets it: every flag, on programs in text assembly.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/executable_format/tensor_files/npz.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using nlohmann::json;
using test::Finished;

constexpr const char kAdd[] = R"(
.kernel sum = "rewire.add"
.func main(x: f32[N, 3], y: f32[N, 3]) -> (sum: f32[2, 3], (count: integer, again: f32[2, 3]))
  %storage = alloc_storage _, alignment=64, f32[2, 3], cpu
  %sum = alloc_tensor %storage, _, f32[2, 3]
  invoke_packed sum(%x, %y, %sum), outputs=1
  %count = load_consti 42
  %rest = alloc_adt tag=1 (%count, %sum)
  %result = alloc_adt tag=0 (%sum, %rest)
  ret %result
.end
.func twice(x: f32[?]) -> x: f32[?]
  ret %x
.end
)";

constexpr const char kTrees[] = R"(
.func main(tree: adt 0 (f32[2], adt 5 (integer, i64[]))) -> (tag: integer, number: i64[])
  %inner = get_field %tree, index=1
  %tag = get_tag %inner
  %number = get_field %inner, index=1
  %result = alloc_adt tag=0 (%tag, %number)
  ret %result
.end
.func any(value: value) -> value: value
  ret %value
.end
)";

class RunSession {
 public:
  RunSession() {
    folder_.Write("add.asm", kAdd);
    folder_.Write("trees.asm", kTrees);
  }

  Finished Run(const std::vector<std::string>& arguments) const {
    return test::RunProgram("vm-run", arguments, folder_.path());
  }
  // The output of a run that must succeed.
  std::string Out(const std::vector<std::string>& arguments) const {
    const Finished finished = Run(arguments);
    INFO(finished.err);
    CHECK(finished.exit_code == 0);
    CHECK(finished.err.empty());
    return finished.out;
  }
  json Json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    return json::parse(Out(arguments));
  }
  const test::TempFolder& folder() const { return folder_; }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

 private:
  test::TempFolder folder_;
};

HostTensor Floats(std::vector<std::int64_t> shape, const std::vector<float>& elements) {
  HostTensor tensor;
  tensor.dtype = kFloat32;
  tensor.shape = std::move(shape);
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(float)});
  return tensor;
}

TEST_CASE("literal inputs by name and index, printed outputs") {
  const RunSession session;
  CHECK(session.Out({"add.asm", "--input", "x=2x3xf32=1,2,3,4,5,6", "-i", "1=2x3xf32=10"}) ==
        "sum: f32[2, 3]\n"
        "[[11, 12, 13],\n"
        " [14, 15, 16]]\n"
        "count: i64[]\n"
        "42\n"
        "again: f32[2, 3]\n"
        "[[11, 12, 13],\n"
        " [14, 15, 16]]\n");
}

TEST_CASE("positions are printed as the strings that they stand for, and maps with their keys") {
  const RunSession session;
  session.folder().Write("words.asm", R"w(
.metadata "strings main.0" "[\"a\",\"b \\\"c\\\"\"]"
.metadata "keys main.1" "[\"a\",7]"
.metadata "strings main.2" "[1,2]"
.func main(x: i64[?], y: f32[?, 2], z: i64[?]) -> (word: i64[?], (map: f32[?, 2], (number: i64[?])))
  %last = alloc_adt tag=0 (%z)
  %rest = alloc_adt tag=0 (%y, %last)
  %result = alloc_adt tag=0 (%x, %rest)
  ret %result
.end
)w");
  const std::vector<std::string> run = {"words.asm",     "-i", "x=3xi64=1,0,2", "-i",
                                        "y=1x2xf32=3,4", "-i", "z=1xi64=0"};
  CHECK(session.Out(run) ==
        "word: i64[3], strings\n"
        "[\"b \\\"c\\\"\",       \"a\",         2]\n"
        "map: f32[1, 2], columns [\"a\",7]\n"
        "[[3, 4]]\n"
        "number: i64[1]\n"
        "[0]\n");
  const json outputs = session.Json(run)["outputs"];
  CHECK(outputs[0]["data"] == json({"b \"c\"", "a", 2}));
  CHECK(outputs[0]["strings"] == json({"a", "b \"c\""}));
  CHECK(outputs[1]["columns"] == json({"a", 7}));
  CHECK(!outputs[2].contains("strings"));
}

TEST_CASE("strings are taken and given where the metadata says which tensors hold their list") {
  const RunSession session;
  session.folder().Write("texts.asm", R"w(
.metadata "input strings main.0" "{\"offsets\":1,\"bytes\":2}"
.metadata "strings main.0" "{\"offsets\":1,\"bytes\":2}"
.func main(x: i64[?, 2], ends: i64[?], text: u8[?], n: i64[?]) -> (y: i64[?, 2], (ends: i64[?], (text: u8[?])))
  %last = alloc_adt tag=0 (%text)
  %rest = alloc_adt tag=0 (%ends, %last)
  %result = alloc_adt tag=0 (%x, %rest)
  ret %result
.end
)w");
  const std::vector<std::string> words = {"texts.asm", "-i", "n=1xi64=0", "-i",
                                          "x=[[\"a\", \"\"], [\"\u00e9\U0001F600\", \"\\\"\"]]"};
  CHECK(session.Out(words) ==
        "y: i64[2, 2], strings\n"
        "[[     \"a\",       \"\"],\n"
        " [\"\u00e9\U0001F600\",     \"\\\"\"]]\n");
  CHECK(session.Json(words)["outputs"][0]["data"] == json({"a", "", "\u00e9\U0001F600", "\""}));
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return session.Run(arguments);
  };
  // Through a file and back.
  REQUIRE(with({"-o", "y=@words.npy"}).exit_code == 0);
  CHECK(with({"-e", "y=@words.npy"}).exit_code == 0);
  CHECK(session.Run({"texts.asm", "-i", "n=1xi64=0", "-i", "x=@words.npy", "-e", "y=@words.npy"}).exit_code ==
        0);
  const Finished differs = with({"-e", "y=[[\"a\", \"b\"], [\"c\", \"d\"]]"});
  CHECK(differs.exit_code == 1);
  CHECK_THAT(differs.out, Catch::Contains("element 1 is '', expected 'b'"));
  CHECK_THAT(with({"-e", "y=[\"a\"]"}).out, Catch::Contains("its shape is [2, 2], expected [1]"));
  CHECK_THAT(with({"-e", "ends=[\"a\"]"}).out, Catch::Contains("it is no strings whose list the run knows"));
  CHECK_THAT(session.Run({"texts.asm", "-i", "x=[[\"a\", \"b\"]]", "-i", "n=[\"a\"]"}).err,
             Catch::Contains("input 'n' (i64[?]) takes no strings"));
  for (const char* wrong : {"[\"a\", 1]", "[[\"a\"], [\"b\", \"c\"]]", "[[\"a\"], \"b\"]", "[\"a\"", "\"a"})
    CHECK_THAT(session.Run({"texts.asm", "-i", std::string("x=") + wrong}).err,
               Catch::Contains("is no string, or list of strings, in JSON"));
  // Tensors that a host makes by itself may be anything.
  const auto given = [&](const char* x, const char* ends) {
    return session.Run({"texts.asm", "-i", "n=1xi64=0", "-i", x, "-i", ends, "-i", "text=1xu8=65"}).err;
  };
  CHECK_THAT(given("x=1x2xi64=0,1", "ends=2xi64=0,1"),
             Catch::Contains("element 1 is position 1 of 1 strings"));
  CHECK_THAT(given("x=1x2xi64=0,0", "ends=2xi64=0,2"),
             Catch::Contains("string 0 of its list lies from 0 to 2 of 1 bytes"));
}

TEST_CASE("an assembled file runs as its text does") {
  const RunSession session;
  const Finished assembled = test::RunProgram("vm-as", {"add.asm", "-o", "add.rwx"}, session.folder().path());
  REQUIRE(assembled.exit_code == 0);
  const std::vector<std::string> inputs = {"-i", "x=2x3xf32=1", "-i", "y=2x3xf32=2"};
  std::vector<std::string> text = {"add.asm"}, binary = {"add.rwx"};
  text.insert(text.end(), inputs.begin(), inputs.end());
  binary.insert(binary.end(), inputs.begin(), inputs.end());
  CHECK(session.Out(text) == session.Out(binary));
}

TEST_CASE("inputs from files of every kind") {
  const RunSession session;
  const HostTensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const HostTensor y = Floats({2, 3}, {0, 0, 0, 0, 0, 1});
  REQUIRE(WriteNpy(session.Path("x.npy"), x).has_value());
  REQUIRE(WriteNpz(session.Path("both.npz"), {{"x", x}, {"y", y}}).has_value());
  REQUIRE(WriteSafetensors(session.Path("both.safetensors"), {{"y", y}, {"other", x}}).has_value());
  const std::string expected = session.Out({"add.asm", "-i", "x=@x.npy", "-i", "y=2x3xf32=0,0,0,0,0,1"});
  CHECK(session.Out({"add.asm", "-i", "@both.npz"}) == expected);
  CHECK(session.Out({"add.asm", "-i", "x=@both.npz", "-i", "y=@both.npz:y"}) == expected);
  CHECK(session.Out({"add.asm", "-i", "x=@both.safetensors:other", "-i", "y=@both.safetensors"}) == expected);
}

TEST_CASE("trees with the signature's tags or their own") {
  const RunSession session;
  CHECK(session.Out({"trees.asm", "-i", "tree=(2xf32=0,(3,i64=7))"}) == "tag: i64[]\n5\nnumber: i64[]\n7\n");
  CHECK(session.Out({"trees.asm", "-f", "any", "-i", "value=9(2xf32=0,(3))"}) ==
        "value: adt 9 (f32[2], adt 0 (3))\n");
  CHECK(session.Out({"trees.asm", "--random"}).substr(0, 13) == "tag: i64[]\n5\n");
}

TEST_CASE("random inputs: seeds, ranges, dimensions") {
  const RunSession session;
  const std::string first = session.Out({"add.asm", "--random", "--dim", "N=2"});
  CHECK(first == session.Out({"add.asm", "--random", "--dim", "N=2", "--seed", "0"}));
  CHECK(first != session.Out({"add.asm", "--random", "--dim", "N=2", "--seed", "1"}));
  // N is known from the input that is given.
  const std::string sum = session.Out({"add.asm", "-i", "x=2x3xf32=1", "--random", "--range", "f32=2:2"});
  CHECK(test::Has(sum, "[[3, 3, 3],\n [3, 3, 3]]"));
  CHECK(test::Has(session.Out({"add.asm", "-f", "twice", "-i", "x=4xf32=random"}), "x: f32[4]"));
}

TEST_CASE("outputs into files") {
  const RunSession session;
  const std::vector<std::string> run = {"add.asm", "-i", "x=2x3xf32=1", "-i", "y=2x3xf32=2"};
  std::vector<std::string> one = run;
  one.insert(one.end(), {"--output", "sum=@sum.npy", "-o", "1=@some.npz", "-o", "again=@some.npz"});
  CHECK(session.Out(one) == "wrote sum.npy\nwrote some.npz\n");
  const Result<HostTensor> sum = ReadNpy(session.Path("sum.npy"));
  REQUIRE(sum.has_value());
  CHECK(sum->shape == std::vector<std::int64_t>{2, 3});
  const Result<std::vector<NamedTensor>> some = ReadNpz(session.Path("some.npz"));
  REQUIRE(some.has_value());
  REQUIRE(some->size() == 2);
  CHECK((*some)[0].name == "count");
  std::vector<std::string> all = run;
  all.insert(all.end(), {"-o", "@all.safetensors"});
  CHECK(session.Out(all) == "wrote all.safetensors\n");
  CHECK(ReadSafetensors(session.Path("all.safetensors"))->size() == 3);
}

TEST_CASE("expected outputs decide the exit code") {
  const RunSession session;
  REQUIRE(WriteNpy(session.Path("y.npy"), Floats({2, 3}, {3, 3, 3, 3, 3, 3})).has_value());
  REQUIRE(WriteNpz(session.Path("y.npz"), {{"sum", Floats({2, 3}, {3, 3, 3, 3, 3.5F, 3})}}).has_value());
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"add.asm", "-i", "x=2x3xf32=1", "-i", "y=2x3xf32=2"});
    return session.Run(more);
  };
  const Finished equal = run({"--expect", "sum=@y.npy", "-e", "2=@y.npy"});
  CHECK(equal.exit_code == 0);
  CHECK(equal.out == "count: i64[]\n42\nsum: equals y.npy\nagain: equals y.npy\n");
  const Finished different = run({"-e", "@y.npz"});
  CHECK(different.exit_code == 1);
  CHECK(test::Has(different.out,
                  "sum: differs from y.npz:sum in 1 of 6 elements; worst at [1, 1]: expected 3.5, given 3, "
                  "difference 0.5\n"));
  CHECK(run({"-e", "@y.npz", "--atol", "0.5"}).exit_code == 0);
  CHECK(run({"-e", "@y.npz", "--rtol", "0.2"}).exit_code == 0);
  CHECK(run({"-e", "@y.npz", "--rtol", "0.1"}).exit_code == 1);
  const Finished shape = run({"-e", "count=@y.npy"});
  CHECK(shape.exit_code == 1);
  CHECK(test::Has(shape.out, "count: differs from y.npy: i64[] given, f32[2, 3] expected\n"));
}

TEST_CASE("what a file has and needs") {
  const RunSession session;
  session.folder().Write("parts.asm",
                         ".const w: f32[2] = {1, 2}\n"
                         ".param scale: f32[N]\n"
                         ".kernel pool = \"rewire.max_pool\" {kernel_shape=[2, 2]}\n"
                         ".func main(x: f32[N]) -> y: f32[N]\n  ret %x\n.end\n");
  CHECK(session.Out({"parts.asm", "--list"}) ==
        "functions: 1\n"
        "  main\n"
        "    inputs   x  f32[N]\n"
        "    outputs  y  f32[N]\n"
        "\n"
        "parameters: 1\n"
        "  scale  f32[N]\n"
        "\n"
        "inside: 1 kernel, 1 constant of 8 B; vm-inspect --all lists them\n");
  const json listing = session.Json({"parts.asm", "-l"});
  CHECK(listing["functions"][0]["inputs"][0]["type"] == "f32[N]");
  CHECK(listing["constants"][1]["kind"] == "parameter");
  CHECK(listing["kernels"][0]["name"] == "rewire.max_pool");
}

TEST_CASE("what becomes of outputs that a host binds") {
  const RunSession session;
  const std::string out = session.Out({"add.asm", "--explain-outputs"});
  CHECK(out.find("sum: copied: it is part of another output too\n") == 0);
  CHECK(out.find("count: copied: it is an integer\n") != std::string::npos);
  CHECK(session.Out({"add.asm", "--explain-outputs", "-f", "twice"}) ==
        "x: copied: it is an input, or part of one\n");
  const json parsed = json::parse(session.Out({"add.asm", "--explain-outputs", "-f", "twice", "--json"}));
  CHECK(parsed["outputs"][0]["plan"] == "copied: it is an input, or part of one");
  CHECK(parsed["outputs"][0]["rewired"] == false);
  CHECK(parsed["outputs"][0]["reason"] == "it is an input, or part of one");
  const json sum = json::parse(session.Out({"add.asm", "--explain-outputs", "--json"}))["outputs"][0];
  CHECK(sum["makers"][0]["in_place"] == false);
  CHECK(sum["makers"][0]["reason"] == "it is part of another output too");
  CHECK(sum["makers"][0]["instruction"].get<std::string>().find("alloc_tensor") != std::string::npos);
}

TEST_CASE("parameters from files") {
  const RunSession session;
  session.folder().Write(
      "param.asm",
      ".param scale: f32[2]\n.func main() -> y: f32[2]\n  %y = load_const scale\n  ret %y\n.end\n");
  REQUIRE(WriteSafetensors(session.Path("p.safetensors"), {{"scale", Floats({2}, {4, 5})}}).has_value());
  CHECK(session.Out({"param.asm", "--params", "p.safetensors"}) == "y: f32[2]\n[4, 5]\n");
}

TEST_CASE("repeated runs are measured") {
  const RunSession session;
  const std::vector<std::string> run = {"add.asm",  "--random", "--dim",    "N=2",
                                        "--repeat", "20",       "--warmup", "2"};
  CHECK(test::Has(session.Out(run), "\n20 runs after 2 to warm up: median "));
  const json timing = session.Json(run)["timing"];
  CHECK(timing["runs"] == 20);
  CHECK(timing["min_ns"] > 0);
  CHECK(timing["median_ns"] <= timing["p90_ns"]);
  CHECK(timing["p90_ns"] <= timing["p99_ns"]);
}

TEST_CASE("the trace has every instruction with its operands") {
  const RunSession session;
  const std::vector<std::string> run = {"add.asm", "-i", "x=2x3xf32=1", "-i", "y=2x3xf32=2", "--trace"};
  const std::string text = session.Out(run);
  CHECK(test::Has(text, "invoke_packed sum(%x, %y, %3), outputs=1"));
  CHECK(test::Has(text, "; %x f32[2, 3], %y f32[2, 3], %3 f32[2, 3]\n"));
  const json trace = session.Json(run)["trace"];
  REQUIRE(trace.size() == 7);
  CHECK(trace[0]["pc"] == 0);
  CHECK(trace[2]["operands"]["%x"] == "f32[2, 3]");
  CHECK(trace[6]["function"] == "main");
  CHECK(trace[6]["depth"] == 1);
}

TEST_CASE("the profile has every kernel, the timeline every call") {
  const RunSession session;
  const std::vector<std::string> run = {"add.asm", "--random",  "--dim",           "N=2",   "--repeat",
                                        "3",       "--profile", "--profile-trace", "t.json"};
  const std::string text = session.Out(run);
  CHECK(test::Has(text, "name               calls"));
  CHECK(test::Has(text, "(outside kernels)      3"));
  CHECK(test::Has(text, "wrote t.json\n"));
  const json profile = session.Json(run)["profile"];
  REQUIRE(profile.size() == 2);
  CHECK(profile[0]["name"] == "sum");
  CHECK(profile[0]["kernel"] == "rewire.add");
  CHECK(profile[0]["calls"] == 3);
  CHECK(profile[0]["share"].get<double>() + profile[1]["share"].get<double>() == Approx(1));

  const json timeline = json::parse(test::ReadWholeFile(session.folder().path() / "t.json"));
  int kernels = 0, runs = 0;
  for (const json& event : timeline["traceEvents"]) {
    if (event["ph"] != "X") continue;
    CHECK(event["ts"].get<double>() >= 0);
    CHECK(event["dur"].get<double>() >= 0);
    if (event["cat"] == "kernel") ++kernels;
    if (event["cat"] == "run") ++runs;
  }
  CHECK(kernels == 3);
  CHECK(runs == 3);
}

TEST_CASE("JSON has the outputs, comparisons, files and errors") {
  const RunSession session;
  const json run = session.Json({"add.asm", "-i", "x=2x3xf32=nan,inf,3,4,5,6", "-i", "y=2x3xf32=0.5"});
  CHECK(run["function"] == "main");
  CHECK(run["outputs"][0]["shape"] == json({2, 3}));
  CHECK(run["outputs"][0]["data"] == json({"nan", "inf", 3.5, 4.5, 5.5, 6.5}));
  CHECK(run["outputs"][1]["data"] == json({42}));
  const Finished failed = session.Run({"missing.rwx", "--json"});
  CHECK(failed.exit_code == 12);
  const json error = json::parse(failed.out)["error"];
  CHECK(error["code"] == 2);
  CHECK(error["name"] == "not found");
  CHECK("vm-run: error: " + error["message"].get<std::string>() + "\n" == failed.err);
}

TEST_CASE("limits end a run with their own exit codes") {
  const RunSession session;
  session.folder().Write("loop.asm",
                         ".func main() -> x: integer\n"
                         "again: goto again\n"
                         "  %x = load_consti 1\n  ret %x\n.end\n"
                         ".func deep() -> x: integer\n"
                         "  %x = invoke deep()\n  ret %x\n.end\n"
                         ".func large() -> x: f32[1048576]\n"
                         "  %storage = alloc_storage _, alignment=64, f32[1048576], cpu\n"
                         "  %x = alloc_tensor %storage, _, f32[1048576]\n  ret %x\n.end\n");
  const Finished steps = session.Run({"loop.asm", "--max-steps", "1000"});
  CHECK(steps.exit_code == 21);
  const Finished deadline = session.Run({"loop.asm", "--deadline", "20ms"});
  CHECK(deadline.exit_code == 23);
  // The runs before the measured ones have it too.
  const Finished warmup = session.Run({"loop.asm", "--deadline", "20ms", "--repeat", "2", "--warmup", "1"});
  CHECK(warmup.exit_code == 23);
  const Finished depth = session.Run({"loop.asm", "-f", "deep", "--max-depth", "100"});
  CHECK(depth.exit_code == 20);
  const Finished bytes = session.Run({"loop.asm", "-f", "large", "--max-bytes", "1M"});
  CHECK(bytes.exit_code == 22);
  for (const Finished* finished : {&steps, &deadline, &warmup, &depth, &bytes}) {
    CHECK(finished->out.empty());
    CHECK(finished->err.substr(0, 15) == "vm-run: error: ");
  }
  CHECK(session.Run({"loop.asm", "-f", "large", "--max-bytes", "8M"}).exit_code == 0);
}

TEST_CASE("kernel libraries and threads") {
  const RunSession session;
  const std::vector<std::string> run = {"add.asm", "--random", "--dim", "N=2", "--threads", "2", "--kernels"};
  std::vector<std::string> by_name = run;
  by_name.emplace_back("librewire_kernels_cpu.so");
  CHECK(test::Has(session.Out(by_name), "sum: f32[2, 3]"));
}

TEST_CASE("a state goes from one process to the next") {
  const RunSession session;
  session.folder().Write("sum.asm", R"(
.kernel add = "rewire.add"
.func step(x: f32[2], total: f32[2]) -> next: f32[2]
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %next = alloc_tensor %s, _, f32[2]
  invoke_packed add(%x, %total, %next), outputs=1
  ret %next
.end
.func other(x: f32[2]) -> y: f32[2]
  ret %x
.end
)");
  session.Out({"sum.asm", "-f", "step", "-i", "x=2xf32=1,2", "-i", "total=2xf32=0", "--carry", "next=total",
               "--save-state", "1.state"});
  // Each of these is a process of its own; the inputs of the one before count unless others are given.
  session.Out({"sum.asm", "-f", "step", "--load-state", "1.state", "-i", "x=2xf32=10,20", "--carry",
               "next=total", "--save-state", "2.state"});
  CHECK(test::Has(session.Out({"sum.asm", "-f", "step", "--load-state", "2.state", "-e", "next=2xf32=21,42"}),
                  "equal"));
  const std::string saved =
      session.Out({"sum.asm", "-f", "step", "--load-state", "2.state", "--save-state", "3.state"});
  CHECK(test::Has(saved, "wrote 3.state\n"));
  CHECK(test::ReadWholeFile(session.folder().path() / "3.state") ==
        test::ReadWholeFile(session.folder().path() / "2.state"));
  CHECK(session.Json({"sum.asm", "-f", "step", "--load-state", "2.state", "--save-state",
                      "4.state"})["written"] == json{"4.state"});
}

TEST_CASE("help and version") {
  const RunSession session;
  const std::string help = session.Out({"--help"});
  CHECK(test::Has(
      help, "Exit codes:\n   0  success\n   1  outputs differ, or a check failed\n  11  invalid argument\n"));
  CHECK(test::Has(help, "--profile-trace FILE"));
  CHECK(test::Has(session.Out({"--version"}), "vm-run (Rewire) "));
}

TEST_CASE("runs for a time, with a histogram") {
  const RunSession session;
  const std::vector<std::string> run = {"add.asm",     "-i",         "x=2x3xf32=1", "-i",
                                        "y=2x3xf32=2", "--duration", "1ms"};
  std::vector<std::string> more = run;
  more.insert(more.end(), {"--histogram", "--warmup", "3"});
  const std::string out = session.Out(more);
  CHECK_THAT(out, Catch::Contains(" runs after 3 to warm up: median "));
  CHECK_THAT(out, Catch::Contains(" to ") && (Catch::Contains("█") || Catch::Contains("#")));
  const json timed = session.Json(more);
  std::size_t counted = 0;
  for (const json& row : timed["histogram"]) counted += row["count"].get<std::size_t>();
  CHECK(counted == timed["timing"]["runs"]);
  // The first limit that is reached ends it.
  more = run;
  more.insert(more.end(), {"--repeat", "2"});
  more[6] = "600s";
  CHECK(session.Json(more)["timing"]["runs"] == 2);
  CHECK_THAT(session.Run({"add.asm", "--duration", "5"}).err, Catch::Contains("--duration: '5' is no time"));
}

TEST_CASE("quiet leaves out what is known, verbose says what is done") {
  const RunSession session;
  const std::vector<std::string> run = {"add.asm",     "-i", "x=2x3xf32=1", "-i",
                                        "y=2x3xf32=2", "-o", "@all.npz"};
  std::vector<std::string> quiet = run;
  quiet.emplace_back("--quiet");
  CHECK(session.Out(quiet).empty());
  std::vector<std::string> verbose = run;
  verbose.emplace_back("-v");
  const Finished finished = session.Run(verbose);
  CHECK(finished.exit_code == 0);
  CHECK(finished.out == "wrote all.npz\n");
  CHECK_THAT(finished.err, Catch::Contains("linked add.asm: 2 functions, 1 kernels, 0 constants\n") &&
                               Catch::Contains(" of memory\n"));
  verbose.emplace_back("--quiet");
  CHECK(session.Run(verbose).exit_code == 11);
  const Finished params = test::RunProgram("vm-params", {"convert", "all.npz", "-o", "all.safetensors", "-q"},
                                           session.folder().path());
  CHECK(params.out.empty());
  CHECK(params.exit_code == 0);
}

}  // namespace
}  // namespace rewire::tools
