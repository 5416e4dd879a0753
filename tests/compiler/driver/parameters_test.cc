// SPDX-License-Identifier: Apache-2.0
// Constants of a model that become parameters: what compiling makes of them does not depend on their
// elements, and programs give the same as with constants.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/compiler/driver/weighted_models.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/c_api/status.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

compiler::CompileOptions AsParameters() {
  compiler::CompileOptions options;
  options.all_parameters = true;
  return options;
}

bool AreNear(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (const float value : b) largest = std::max(largest, std::fabs(value));
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](float x, float y) {
           return std::fabs(x - y) <= 1e-5F * (largest + std::fabs(y));
         });
}

// The kernels that a run of `main` calls, in order.
std::vector<std::string> CallsOf(const Outcome& outcome) {
  std::vector<std::string> calls;
  const Module& module = outcome.compiled.module;
  for (std::uint32_t pc = 0; pc < module.functions[0].code.size();
       pc += WordsOf(module.functions[0].code[pc])) {
    if (OpcodeOf(module.functions[0].code[pc]) != Opcode::kInvokePacked) continue;
    calls.push_back(
        module.kernels[module.functions[0].code[pc + WordOf(Opcode::kInvokePacked, "kernel")]].name);
  }
  return calls;
}

TEST_CASE("parameters: one executable serves all weights, as constants would") {
  for (const WeightedCase& each : WeightedCases()) {
    INFO(each.name);
    WeightedModel first = each.make(1), second = each.make(2);
    const Ints x = first.x();
    const Outcome constants = CompileBytes(first.Bytes()), others = CompileBytes(second.Bytes());
    const Outcome made = CompileBytes(first.Bytes(), "", AsParameters());
    const Outcome again = CompileBytes(second.Bytes(), "", AsParameters());
    INFO(made.message << again.message);
    REQUIRE((made.message.empty() && again.message.empty()));
    CHECK(made.compiled.parameters.size() ==
          static_cast<std::size_t>(std::count_if(
              made.compiled.module.constants.begin(), made.compiled.module.constants.end(),
              [](const Constant& constant) { return constant.kind == ConstantKind::kParameter; })));
    CHECK(made.compiled.parameters.size() > 0);
    const bool same_file = FileOf(made) == FileOf(again);
    CHECK(same_file);
    CHECK(CallsOf(made) == CallsOf(constants));
    const std::vector<float> expected = RunWith(constants, {}, x),
                             expected_of_others = RunWith(others, {}, x);
    CHECK(expected != expected_of_others);
    CHECK(RunWith(made, made.compiled.parameters, x) == expected);
    CHECK(RunWith(made, again.compiled.parameters, x) == expected_of_others);
    // Without the passes nothing is packed; without this one alone, what packs is left as it is.
    std::set<std::string> passes;
    for (const std::string& pass : compiler::PassNames()) passes.insert(pass);
    for (const std::set<std::string>& disabled : {passes, {"compute-at-load"}}) {
      compiler::CompileOptions fewer = AsParameters();
      fewer.disabled_passes = disabled;
      const Outcome less = CompileBytes(first.Bytes(), "", fewer);
      REQUIRE(less.message.empty());
      CHECK(AreNear(RunWith(less, again.compiled.parameters, x), expected_of_others));
    }
  }
}

TEST_CASE("parameters: long and branching chains of what is computed from one") {
  constexpr int kNodes = 3000;
  WeightedModel model(1, {3});
  model.Weight("w", {3});
  std::string last = "w";
  for (int i = 0; i < kNodes; ++i) {
    const std::string next = "v" + std::to_string(i);
    model.Node(i % 2 == 0 ? "Add" : "Sub", {last, i % 2 == 0 ? last : "w"}, next);
    last = next;
  }
  model.Node("Tanh", {last}, "bounded");
  model.Node("Add", {"x", "bounded"}, "y");
  const Outcome made = CompileBytes(model.Bytes(), "", AsParameters());
  REQUIRE(made.message.empty());
  CHECK(CallsOf(made).size() == 1);
  CHECK(AreNear(RunWith(made, made.compiled.parameters, {3}), RunWith(CompileBytes(model.Bytes()), {}, {3})));
  // As a condition on which the program depends, it stays a constant.
  WeightedModel branches(1, {3});
  AddInts(branches.graph(), "zero", {0}, true);
  last = "zero";
  for (int i = 0; i < 64; ++i) {
    const std::string next = "v" + std::to_string(i);
    branches.Node("Add", {last, last}, next);
    last = next;
  }
  branches.Node("ReduceSum", {"x", last}, "y");
  compiler::CompileOptions options;
  options.parameters = {"zero"};
  CHECK_THAT(CompileBytes(branches.Bytes(), "", options).message,
             Catch::Contains("constant 'zero' cannot be a parameter"));
}

WeightedModel ReshapedProduct() {
  WeightedModel model(1, {3, 20});
  model.Weight("weights", {20, 24});
  AddInts(model.graph(), "shape", {2, 36});
  model.Node("MatMul", {"x", "weights"}, "p");
  model.Node("Reshape", {"p", "shape"}, "y");
  return model;
}

TEST_CASE("parameters: what a program depends on stays a constant, or cannot be named") {
  const Outcome all = CompileBytes(ReshapedProduct().Bytes(), "", AsParameters());
  REQUIRE(all.compiled.parameters.size() == 1);
  CHECK(all.compiled.parameters.name(0) == "weights");
  compiler::CompileOptions options;
  options.parameters = {"shape"};
  CHECK(
      CompileBytes(ReshapedProduct().Bytes(), "", options).message ==
      "model: constant 'shape' cannot be a parameter: the program depends on its elements, as on those of a "
      "shape, an axis or a scale of quantization; leave it out of the parameters");
  options.parameters = {"weight"};
  CHECK(CompileBytes(ReshapedProduct().Bytes(), "", options).message ==
        "model: the model has no constant 'weight'; did you mean 'weights'? The constants: shape, weights");
  options.parameters = {"weights"};
  options.precision = Precision::kBf16;
  CHECK(CompileBytes(ReshapedProduct().Bytes(), "", options).message ==
        "model: parameters need the model's own precision, not int8 or bf16: those depend on the weights");
}

TEST_CASE("parameters: a name may be that of a scalar; others stay constants") {
  WeightedModel model(1, {3, 4});
  model.Weight("w", {4, 4});
  model.Weight("factor", {});
  model.Node("MatMul", {"x", "w"}, "p");
  model.Node("Mul", {"p", "factor"}, "y");
  compiler::CompileOptions options;
  options.parameters = {"factor"};
  const std::string bytes = model.Bytes();
  const Outcome named = CompileBytes(bytes, "", options), all = CompileBytes(bytes, "", AsParameters());
  REQUIRE(named.compiled.parameters.size() == 1);
  CHECK(named.compiled.parameters.name(0) == "factor");
  REQUIRE(all.compiled.parameters.size() == 1);
  CHECK(all.compiled.parameters.name(0) == "w");
  CHECK(AreNear(RunWith(named, named.compiled.parameters, {3, 4}),
                RunWith(all, all.compiled.parameters, {3, 4})));
}

TEST_CASE("parameters: a set over a base set replaces what it names, and the rest is shared") {
  WeightedModel first(1, {3, 20}), second(2, {3, 20});
  for (WeightedModel* model : {&first, &second}) {
    model->Weight("a", {20, 20});
    model->Weight("b", {20, 20});
    model->Node("MatMul", {"x", "a"}, "p");
    model->Node("MatMul", {"p", "b"}, "y");
  }
  const Outcome made = CompileBytes(first.Bytes(), "", AsParameters());
  const Outcome other = CompileBytes(second.Bytes(), "", AsParameters());
  const Result<Executable> executable = Executable::FromModule(made.compiled.module);
  REQUIRE(executable);
  LinkOptions options;
  options.parameters.push_back(made.compiled.parameters);
  const Result<Program> base = Program::Link(*executable, options);
  REQUIRE(base);
  const ParameterSet& tuned_set = other.compiled.parameters;
  ParameterSet delta;
  delta.Set("b", *tuned_set.TryGet(tuned_set.Find("b")));

  const Result<Program> tuned = base->Rebind({&delta, 1});
  REQUIRE(tuned);
  const auto data = [](const Program& program, const std::string& name) {
    const ParameterSet set = ParameterSet::Of(program);
    REQUIRE(set.Find(name) < set.size());
    return set.TryGet(set.Find(name))->dl().data;
  };
  CHECK(data(*base, "a") == data(*tuned, "a"));
  CHECK(data(*base, "a.packed") == data(*tuned, "a.packed"));
  CHECK(data(*base, "b") != data(*tuned, "b"));
  CHECK(data(*base, "b.packed") != data(*tuned, "b.packed"));
  // Packed weights are found by their content, also from another executable of the same weights.
  const Result<Program> again = Program::Link(*executable, options);
  REQUIRE(again);
  CHECK(data(*base, "b.packed") == data(*again, "b.packed"));
}

TEST_CASE("parameters: in C, as names and all, with the model's own weights") {
  const std::string model = ReshapedProduct().Bytes();
  const auto compile = [&](const RewireCompileOptions& options, RewireCompileReport* report) {
    RewireExecutable* executable = nullptr;
    const RewireStatus status =
        rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &options, report, &executable);
    rewire_executable_destroy(executable);
    return status;
  };
  RewireParameterSet* own = nullptr;
  RewireCompileReport report{};
  report.struct_size = sizeof(report);
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  options.all_parameters = 1;
  options.own_parameters = &own;
  REQUIRE(compile(options, &report) == kRewireOk);
  CHECK(report.parameters == 1);
  CHECK(report.parameter_bytes == 20 * 24 * sizeof(float));
  const char* name = nullptr;
  REQUIRE(rewire_parameter_set_name(own, 0, &name) == kRewireOk);
  CHECK(std::string(name) == "weights");
  rewire_parameter_set_destroy(own);
  const char* const names[] = {"shape"};
  options.own_parameters = nullptr;
  options.all_parameters = 0;
  options.parameters = names;
  options.parameter_count = 1;
  CHECK(compile(options, nullptr) == kRewireInvalidArgument);
  CHECK_THAT(rewire_last_error_message(), Catch::Contains("constant 'shape' cannot be a parameter"));
}

TEST_CASE("parameters: vm-compile writes the model's own weights, and vm-run binds them") {
  const TempFolder folder;
  folder.Write("model.onnx", ReshapedProduct().Bytes());
  const auto run = [&](const char* program, const std::vector<std::string>& arguments) {
    const Finished done = RunProgram(program, arguments, folder.path());
    INFO(program << ": " << done.err);
    CHECK(done.exit_code == 0);
    return done.out;
  };
  run("vm-compile", {"model.onnx", "-o", "constants.rwx"});
  CHECK_THAT(run("vm-compile", {"model.onnx", "--parameters", "all", "--weights", "own.safetensors"}),
             Catch::Contains("\n1 parameters with 1.9 KiB are bound when a program is linked"));
  const std::string expected = run("vm-run", {"constants.rwx", "--random"});
  CHECK(run("vm-run", {"model.rwx", "--random", "--params", "own.safetensors"}) == expected);
  CHECK(std::filesystem::file_size(folder.path() / "model.rwx") + 1024 <
        std::filesystem::file_size(folder.path() / "constants.rwx"));
  // A file stands for the names in it.
  run("vm-compile", {"model.onnx", "-o", "named.rwx", "--parameters", "own.safetensors"});
  CHECK(run("vm-run", {"named.rwx", "--random", "--params", "own.safetensors"}) == expected);
  const Finished unbound = RunProgram("vm-run", {"model.rwx", "--random"}, folder.path());
  CHECK_THAT(unbound.err, Catch::Contains("weights: no parameter of this name given, f32[20, 24] expected"));
}

}  // namespace
}  // namespace rewire::test
