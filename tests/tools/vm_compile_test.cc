// SPDX-License-Identifier: Apache-2.0
// vm-compile as a user meets it: what it says of models that it cannot compile, and of those that it can.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

constexpr int kNotFound = 12;
constexpr int kInvalidFile = 14;
constexpr int kUnsupported = 15;

onnx::ModelProto Relu() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", 4});
  AddNode(model.mutable_graph(), "Relu", {"x"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

// A weight of 16 bytes whose elements lie in a file.
onnx::ModelProto WithExternalData(const std::string& location, const std::string& offset = "0") {
  onnx::ModelProto model = EmptyModel();
  onnx::TensorProto* weight = model.mutable_graph()->add_initializer();
  weight->set_name("w");
  weight->set_data_type(onnx::TensorProto::FLOAT);
  weight->add_dims(4);
  weight->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair{"location", location}, std::pair{"offset", offset}}) {
    onnx::StringStringEntryProto* entry = weight->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  AddNode(model.mutable_graph(), "Relu", {"w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

struct Case {
  const char* what;
  std::string bytes;
  int exit_code;
  std::string message;  // after "vm-compile: error: "
};

std::vector<Case> BadModels() {
  std::vector<Case> cases;
  const std::string good = Relu().SerializeAsString();
  cases.push_back({"corrupt", "\xFF\xFF\xFF" + good, kInvalidFile,
                   "model.onnx: not an ONNX model, or a truncated one; copy it again, or export one as "
                   "docs/from-pytorch.md says"});
  cases.push_back({"truncated", good.substr(0, good.size() / 2), kInvalidFile,
                   "model.onnx: not an ONNX model, or a truncated one; copy it again, or export one as "
                   "docs/from-pytorch.md says"});
  cases.push_back({"empty", "", kInvalidFile, "model.onnx: it has no graph"});
  cases.push_back({"external data missing", WithExternalData("gone.bin").SerializeAsString(), kNotFound, ""});
  cases.push_back({"external data too short", WithExternalData("short.bin").SerializeAsString(), kInvalidFile,
                   "model.onnx: tensor 'w': external data 'short.bin': 16 bytes at 0 of a file of 3; the "
                   "tensor has 16 bytes"});
  // Beyond the end of the file; with the length it comes to 12.
  cases.push_back({"external data at an offset that wraps",
                   WithExternalData("long.bin", "18446744073709551612").SerializeAsString(), kInvalidFile,
                   "model.onnx: tensor 'w': external data 'long.bin': 16 bytes at 18446744073709551612 of a "
                   "file of 64; the tensor has 16 bytes"});
  cases.push_back({"external data at an offset beyond all numbers",
                   WithExternalData("long.bin", "18446744073709551616").SerializeAsString(), kInvalidFile,
                   "model.onnx: tensor 'w': external data: offset is '18446744073709551616', expected a "
                   "number"});
  cases.push_back({"external data outside the folder", WithExternalData("../x.bin").SerializeAsString(),
                   kInvalidFile,
                   "model.onnx: tensor 'w': external data '../x.bin' is not inside the model's folder"});
  onnx::ModelProto cyclic = Relu();
  cyclic.mutable_graph()->mutable_node(0)->set_input(0, "y");
  cases.push_back({"cyclic", cyclic.SerializeAsString(), kInvalidFile,
                   "model.onnx: the graph is cyclic: Relu 'y' reads what depends on its own output"});
  onnx::ModelProto absurd = EmptyModel();
  SetValue(absurd.mutable_graph()->add_input(), "x", {std::int64_t{1} << 40, std::int64_t{1} << 40});
  AddNode(absurd.mutable_graph(), "Relu", {"x"}, "y");
  SetValue(absurd.mutable_graph()->add_output(), "y", {});
  cases.push_back({"absurd dimensions", absurd.SerializeAsString(), kInvalidFile,
                   "model.onnx: Relu 'y': 'y' with shape [1099511627776, 1099511627776] is too large"});
  return cases;
}

TEST_CASE("code and tables are compressed unless that is turned off") {
  const TempFolder folder;
  folder.Write("model.onnx", Relu().SerializeAsString());
  const auto bytes = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"model.onnx", "-o", "model.rwx"});
    REQUIRE(RunProgram("vm-compile", arguments, folder.path()).exit_code == 0);
    return std::filesystem::file_size(folder.path() / "model.rwx");
  };
  CHECK(bytes({}) < bytes({"--compress", "off"}) / 2);
  CHECK(bytes({"--compress", "auto"}) == bytes({}));
}

TEST_CASE("in C, code and tables are compressed unless that is turned off") {
  const TempFolder folder;
  const std::string model = Relu().SerializeAsString(), path = (folder.path() / "model.rwx").string();
  const auto bytes = [&](std::uint32_t uncompressed) {
    RewireCompileOptions options{};
    options.struct_size = sizeof(options);
    options.uncompressed = uncompressed;
    RewireExecutable* executable = nullptr;
    REQUIRE(rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &options, nullptr,
                                  &executable) == kRewireOk);
    const RewireStatus written = rewire_executable_write(executable, path.c_str());
    rewire_executable_destroy(executable);
    REQUIRE(written == kRewireOk);
    return std::filesystem::file_size(path);
  };
  CHECK(bytes(0) < bytes(1) / 2);
}

// y = x w, where one weight is subnormal.
onnx::ModelProto WithSubnormalWeight() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", 2});
  AddFloats(model.mutable_graph(), "w", {2, 1}, {1e-40F, 1});
  AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

TEST_CASE("the summary says which weights became 0, and what a strict program leaves out") {
  const TempFolder folder;
  folder.Write("model.onnx", WithSubnormalWeight().SerializeAsString());
  const Finished usual = RunProgram("vm-compile", {"model.onnx"}, folder.path());
  CHECK_THAT(usual.out, Catch::Contains("\ntiny-weights: 1 subnormal weight of 'w' became 0 (MatMul 'y')\n"));
  CHECK_THAT(RunProgram("vm-inspect", {"model.rwx"}, folder.path()).out, !Catch::Contains("strict"));
  const Finished strict = RunProgram("vm-compile", {"model.onnx", "--strict"}, folder.path());
  CHECK_THAT(strict.out, !Catch::Contains("tiny-weights:") &&
                             Catch::Contains("\nstrict: left out keep-f32, ") &&
                             Catch::Contains(", winograd, "));
  CHECK_THAT(RunProgram("vm-inspect", {"model.rwx"}, folder.path()).out, Catch::Contains("strict"));
  const Finished json = RunProgram("vm-compile", {"model.onnx", "--json"}, folder.path());
  const auto summary = nlohmann::json::parse(json.out);
  CHECK(summary["strict"] == false);
  CHECK(summary["zeroed_weights"] ==
        nlohmann::json::parse(R"([{"constant": "w", "node": "MatMul 'y'", "count": 1}])"));
}

TEST_CASE("in C, the same is told to a callback") {
  const std::string model = WithSubnormalWeight().SerializeAsString();
  for (const std::uint32_t strict : {0U, 1U}) {
    std::string told;
    RewireCompileOptions options{};
    options.struct_size = sizeof(options);
    options.strict = strict;
    options.context = &told;
    options.zeroed = [](void* context, const char* constant, const char* node, std::uint64_t count) {
      *static_cast<std::string*>(context) +=
          std::string(constant) + ", " + node + ", " + std::to_string(count);
    };
    RewireExecutable* executable = nullptr;
    REQUIRE(rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &options, nullptr,
                                  &executable) == kRewireOk);
    rewire_executable_destroy(executable);
    CHECK(told == (strict == 1 ? "" : "w, MatMul 'y', 1"));
  }
}

TEST_CASE("models that cannot be read end in one message, and leave no file") {
  for (const Case& bad : BadModels()) {
    CAPTURE(bad.what);
    const TempFolder folder;
    folder.Write("model.onnx", bad.bytes);
    folder.Write("short.bin", "abc");
    folder.Write("long.bin", std::string(64, 'w'));
    const Finished done = RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx"}, folder.path());
    CHECK(done.exit_code == bad.exit_code);
    CHECK(done.out.empty());
    if (bad.message.empty()) {
      CHECK_THAT(done.err, Catch::StartsWith("vm-compile: error: model.onnx: tensor 'w': external data: ") &&
                               Catch::Contains("gone.bin"));
    } else {
      CHECK(done.err == "vm-compile: error: " + bad.message + "\n");
    }
    CHECK_FALSE(std::filesystem::exists(folder.path() / "model.rwx"));
  }
}

TEST_CASE("links to external data are followed inside the model's folder, and not out of it") {
  const TempFolder folder, elsewhere;
  elsewhere.Write("w.bin", std::string(16, 'w'));
  folder.Write("own.bin", std::string(16, 'w'));
  std::filesystem::create_symlink(elsewhere.path() / "w.bin", folder.path() / "file.bin");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.path() / "deep");
  std::filesystem::create_symlink("own.bin", folder.path() / "inner.bin");
  const std::filesystem::path outside = std::filesystem::canonical(elsewhere.path());
  const std::pair<std::string, std::filesystem::path> cases[] = {
      {"file.bin", outside / "w.bin"},
      {"deep/w.bin", outside / "w.bin"},
      {"deep/../file.bin", outside.parent_path() / "file.bin"}};
  for (const auto& [location, target] : cases) {
    folder.Write("model.onnx", WithExternalData(location).SerializeAsString());
    const Finished done = RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx"}, folder.path());
    CHECK(done.exit_code == kInvalidFile);
    CHECK(done.err ==
          "vm-compile: error: model.onnx: tensor 'w': external data '" + location + "' is '" +
              target.string() +
              "', by a link that leads out of the model's folder; copy the file there, or allow the folder "
              "where it lies with --allow-external\n");
    CHECK_FALSE(std::filesystem::exists(folder.path() / "model.rwx"));
  }
  folder.Write("model.onnx", WithExternalData("inner.bin").SerializeAsString());
  CHECK(RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx"}, folder.path()).err.empty());
}

TEST_CASE("links to external data lead to folders that are allowed, and to no others") {
  const TempFolder folder, cache, other;
  cache.Write("blob", std::string(16, 'w'));
  other.Write("blob", std::string(16, 'w'));
  std::filesystem::create_symlink(cache.path() / "blob", folder.path() / "w.bin");
  std::filesystem::create_symlink(other.path() / "blob", folder.path() / "o.bin");
  const auto compile = [&](const std::string& location, const std::string& allowed) {
    folder.Write("model.onnx", WithExternalData(location).SerializeAsString());
    return RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx", "--allow-external", allowed},
                      folder.path());
  };
  CHECK(compile("w.bin", cache.path().string()).err.empty());
  // An allowed folder may be a link, too.
  std::filesystem::create_directory_symlink(cache.path(), folder.path() / "hub");
  CHECK(compile("w.bin", "hub").err.empty());
  CHECK_THAT(compile("o.bin", "hub").err, Catch::Contains("by a link that leads out of the model's folder"));
  // A path that leads out by itself is no link.
  const std::string outside = (".." / cache.path().filename() / "blob").string();
  CHECK_THAT(compile(outside, cache.path().string()).err,
             Catch::Contains("is not inside the model's folder"));
  CHECK_THAT(compile((cache.path() / "blob").string(), cache.path().string()).err,
             Catch::Contains("is not inside the model's folder"));
  CHECK_THAT(compile("o.bin", "nowhere").err, Catch::Contains("folder 'nowhere': "));
}

TEST_CASE("a dimension that no input has cannot be fixed") {
  const TempFolder folder;
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"batch", ""});
  AddNode(model.mutable_graph(), "Neg", {"x"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {"batch", "width"});
  folder.Write("model.onnx", model.SerializeAsString());
  const auto compile = [&](const std::string& dim) {
    return RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx", "--dim", dim}, folder.path()).err;
  };
  CHECK(compile("batch=2").empty());
  CHECK(compile("x.1=2").empty());
  CHECK(compile("bath=2") ==
        "vm-compile: error: model.onnx: no input has a dimension \"bath\"; did you mean 'batch'? The "
        "dimensions: batch, x.1\n");
  CHECK_THAT(compile("width=2"), Catch::Contains("no input has a dimension \"width\""));
}

TEST_CASE("neither the model nor its external data is written over, by whatever name") {
  const TempFolder folder;
  const std::string model = WithExternalData("w.bin").SerializeAsString();
  folder.Write("model.onnx", model);
  folder.Write("w.bin", std::string(16, 'w'));
  std::filesystem::create_symlink("w.bin", folder.path() / "soft.rwx");
  std::filesystem::create_hard_link(folder.path() / "model.onnx", folder.path() / "hard.rwx");
  for (const std::string output : {"model.onnx", "w.bin", "soft.rwx", "hard.rwx"}) {
    const Finished done = RunProgram("vm-compile", {"model.onnx", "-o", output}, folder.path());
    CHECK(done.exit_code == 11);
    CHECK_THAT(done.err, Catch::StartsWith("vm-compile: error: the output '" + output + "' is the file '"));
  }
  CHECK(test::ReadWholeFile(folder.path() / "model.onnx") == model);
  CHECK(test::ReadWholeFile(folder.path() / "w.bin") == std::string(16, 'w'));
}

TEST_CASE("everything that is not supported is listed, and nothing written") {
  onnx::ModelProto model = Relu();
  AddNode(model.mutable_graph(), "Frobnicate", {"y"}, "z")->set_name("first");
  AddNode(model.mutable_graph(), "Mystery", {"x"}, "u")->set_domain("com.example");
  const TempFolder folder;
  folder.Write("model.onnx", model.SerializeAsString());
  const Finished done = RunProgram("vm-compile", {"model.onnx"}, folder.path());
  CHECK(done.exit_code == kUnsupported);
  CHECK(done.err ==
        "not supported:\n"
        "  first (Frobnicate, opset 13): the operator is not known; docs/operators.md lists those that are, "
        "docs/own-operators.md says how to add one\n"
        "  u (com.example.Mystery, opset 0): the model imports no operator set of domain 'com.example'\n"
        "vm-compile: error: model.onnx: 2 of 3 nodes are not supported\n");
  CHECK_FALSE(std::filesystem::exists(folder.path() / "model.rwx"));
}

TEST_CASE("the summary counts nodes, kernels, weights and memory") {
  const TempFolder folder;
  folder.Write("model.onnx", Relu().SerializeAsString());
  const Finished open = RunProgram("vm-compile", {"model.onnx"}, folder.path());
  CHECK(open.exit_code == 0);
  CHECK(open.err.empty());  // progress is for terminals
  CHECK_THAT(open.out, Catch::StartsWith(
                           "wrote model.rwx: 1 nodes of the model became 1; 2 kernel calls of 2 kernels, ") &&
                           Catch::EndsWith("\nthe memory of a run has no bound as N is open; --dim N=SIZE or "
                                           "--max-dim N=SIZE gives one; vm-inspect --memory says more\n"));
  const Finished bounded = RunProgram("vm-compile", {"model.onnx", "--max-dim", "N=8"}, folder.path());
  CHECK_THAT(bounded.out,
             Catch::Contains("\na run takes at most ") && Catch::EndsWith(" beside weights and outputs\n"));
  // Errors of a run name the model's node and the bound.
  const Finished run = RunProgram("vm-run", {"model.rwx", "--random", "--dim", "N=9"}, folder.path());
  CHECK(run.exit_code == 11);
  CHECK(run.err ==
        "vm-run: error: function main, input 0 (x): f32[N, 4] expected, f32[9, 4] given; the program was "
        "compiled for N of at most 8\n");
}

TEST_CASE("in C and C++, the program is checked after each pass if that is asked for") {
  const std::string model = Relu().SerializeAsString();
  const auto judge = [](const std::vector<std::string>& told, bool asked) {
    CAPTURE(told, asked);
    std::size_t checked = 0;
    for (const std::string& pass : CompilerPasses()) {
      const auto at = std::find(told.begin(), told.end(), pass);
      if (at == told.end()) continue;
      ++checked;
      REQUIRE(at + 1 != told.end());
      CHECK((at[1] == "checking after the pass '" + pass + "'") == asked);
    }
    CHECK(checked > 10);
  };
  for (const bool asked : {false, true}) {
    std::vector<std::string> told;
    compiler::CompileOptions options;
    options.check_passes = asked;
    options.progress = [&](const std::string& what) { told.push_back(what); };
    REQUIRE(CompileProto(Relu(), options).message.empty());
    judge(told, asked);
    told.clear();
    RewireCompileOptions in_c{};
    in_c.struct_size = sizeof(in_c);
    in_c.check_passes = asked ? 1 : 0;
    in_c.context = &told;
    in_c.progress = [](void* context, const char* what) {
      static_cast<std::vector<std::string>*>(context)->emplace_back(what);
    };
    RewireExecutable* executable = nullptr;
    REQUIRE(rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &in_c, nullptr,
                                  &executable) == kRewireOk);
    rewire_executable_destroy(executable);
    if (asked) judge(told, asked);  // 0 leaves it to the build: with assertions it checks
  }
}

TEST_CASE("whoever asks is told what begins") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", 4});
  AddFloats(model.mutable_graph(), "w", {4, 2}, std::vector<float>(8, 1));
  AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {});
  std::vector<std::string> told;
  compiler::CompileOptions options;
  options.check_passes = false;
  options.progress = [&](const std::string& what) { told.push_back(what); };
  REQUIRE(CompileProto(model, options).message.empty());
  REQUIRE(told.size() > 4);
  CHECK(told.front() == "lowering nodes");
  CHECK(told[1] == "dead-code");
  CHECK(told[told.size() - 2] == "packing weights 1 of 1");
  CHECK(told.back() == "emitting");
}

TEST_CASE("a profile has the model's own nodes, however often a kernel stands in for them") {
  const TempFolder folder;
  onnx::ModelProto model = Relu();
  onnx::GraphProto* graph = model.mutable_graph();
  graph->mutable_node(0)->set_output(0, "r");
  graph->mutable_node(0)->set_name("first");
  AddNode(graph, "Exp", {"r"}, "a")->set_name("left");
  AddNode(graph, "Softmax", {"r"}, "s")->set_name("middle");
  AddNode(graph, "Exp", {"s"}, "b")->set_name("right");
  AddNode(graph, "Add", {"a", "b"}, "y");
  folder.Write("model.onnx", model.SerializeAsString());
  const std::vector<std::string> compile = {"model.onnx", "--disable-pass", "fuse-elementwise"};
  REQUIRE(RunProgram("vm-compile", compile, folder.path()).exit_code == 0);
  const std::vector<std::string> run = {"model.rwx", "--random", "--dim",    "N=9",
                                        "--repeat",  "3",        "--profile"};
  const Finished text = RunProgram("vm-run", run, folder.path());
  CHECK_THAT(text.out, Catch::Contains("\nby node of the model:\n"));
  CHECK_THAT(text.out, Catch::Contains("\n  Exp 'left' "));
  std::vector<std::string> with_json = run;
  with_json.emplace_back("--json");
  const auto json = nlohmann::json::parse(RunProgram("vm-run", with_json, folder.path()).out);
  int exps = 0;
  for (const auto& row : json["profile"]) {
    if (row["kernel"] != "rewire.exp") continue;
    CHECK(row["calls"] == 6);
    ++exps;
  }
  CHECK(exps == 1);
  std::map<std::string, int> nodes;
  double all = 0;
  for (const auto& row : json["profile_nodes"]) {
    if (row["kernel"] == "rewire.exp") nodes[row["name"]] = row["calls"];
    all += row["total_ns"].get<double>();
  }
  CHECK(nodes == std::map<std::string, int>{{"Exp 'left'", 3}, {"Exp 'right'", 3}});
  double by_kernel = 0;
  for (const auto& row : json["profile"]) {
    if (row["name"] != "(outside kernels)") by_kernel += row["total_ns"].get<double>();
  }
  CHECK(all == Approx(by_kernel));
}

}  // namespace
}  // namespace rewire::test
