// SPDX-License-Identifier: Apache-2.0
//
// Arenas on the device: they change no bit of any output, and take what the memory bound says.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <functional>
#include <numeric>
#include <utility>

#include "rewire/tests/devices/device_bounds.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/support/random_graph.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

struct Ran {
  std::vector<std::vector<float>> outputs;
  std::uint64_t device_bytes = 0;  // the bound's
};

enum class Peak : std::uint8_t { kUnknown, kAtMost, kEqual };

Ran RunOnDevice(const Outcome& outcome, const RandomGraph& graph, std::int64_t n, Peak peak) {
  INFO(outcome.message);
  REQUIRE(outcome.message.empty());
  const Result<Executable> executable = Executable::FromModule(Module(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  const Shape shape = graph.input(n);
  std::vector<float> x(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 29) * 0.125F - 1.5F;
  const Result<MemoryBound> bound = program->TryMemoryBound();
  REQUIRE(bound);
  Ran ran;
  if (!bound->devices.empty()) ran.device_bytes = bound->devices[0].bytes;
  VirtualMachine vm(*program);
  REQUIRE(vm.TrySetInput("x", TensorView(x.data(), DTypeOf<float>(), shape)));
  for (int i = 0; i < 2; ++i) {
    const Status done = vm.TryInvoke();
    INFO((done ? "" : done.error().message()));
    REQUIRE(done);
    if (i > 0 || peak == Peak::kUnknown) continue;
    CHECK(bound->unbounded == "");
    CHECK(vm.bytes_peak() <= bound->bytes);
    if (peak == Peak::kEqual) CheckPeak(vm.bytes_peak(), bound->bytes);
  }
  for (int i = 0; i < graph.outputs(); ++i) {
    const Value& result = vm.result();
    const Tensor output =
        graph.outputs() == 1 ? result.tensor() : result.field(static_cast<std::uint32_t>(i)).tensor();
    ran.outputs.emplace_back(output.data<float>(), output.data<float>() + output.view().size());
  }
  return ran;
}

compiler::CompileOptions OnDevice() {
  compiler::CompileOptions options;
  options.device = DeviceName();
  options.least_device_work = 0;
  return options;
}

TEST_CASE("an arena on the device changes nothing that random graphs compute there") {
  int arenas = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed);
    if (graph.outputs() == 0) continue;
    const Outcome with = CompileProto(graph.model(), OnDevice());
    compiler::CompileOptions plain = OnDevice();
    plain.disabled_passes = {"in-place", "arena"};
    const Outcome without = CompileProto(graph.model(), plain);
    CHECK(without.compiled.device_arena_bytes == 0);
    CHECK(with.compiled.device_arena_bytes <= with.compiled.device_separate_bytes);
    const Ran given = RunOnDevice(with, graph, 0, Peak::kEqual);
    const Ran expected = RunOnDevice(without, graph, 0, Peak::kEqual);
    CHECK(given.outputs == expected.outputs);
    CHECK(given.device_bytes <= expected.device_bytes);
    arenas += with.compiled.device_arena_bytes > 0 ? 1 : 0;
  }
  CHECK(arenas >= 5);
}

TEST_CASE("nor does one whose places follow from the input's size") {
  int laid_out = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed, true);
    if (graph.outputs() == 0) continue;
    compiler::CompileOptions by_shape = OnDevice(), limited = OnDevice(), plain = OnDevice();
    by_shape.dump = [&](const std::string& stage, const std::string& text) {
      if (stage == "shape-arena" && text.find("device arena by shape") != std::string::npos) ++laid_out;
    };
    limited.max_dims = {{"N", 40}};
    plain.disabled_passes = {"in-place", "arena", "shape-arena"};
    const Outcome with = CompileProto(graph.model(), by_shape);
    const Outcome most = CompileProto(graph.model(), limited);
    const Outcome without = CompileProto(graph.model(), plain);
    for (const std::int64_t n : {30, 1, 7}) {
      CAPTURE(n);
      const Ran expected = RunOnDevice(without, graph, n, Peak::kUnknown);
      CHECK(RunOnDevice(with, graph, n, Peak::kUnknown).outputs == expected.outputs);
      CHECK(RunOnDevice(most, graph, n, Peak::kAtMost).outputs == expected.outputs);
    }
  }
  CHECK(laid_out >= 2);
}

TEST_CASE("the bound of a device's memory is what a run takes there") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {64, 16});
  SetValue(graph->add_output(), "y", {});
  std::string last = "x";
  for (const std::int64_t width : {48, 32, 40, 24, 16}) {
    const std::int64_t from = last == "x" ? 16 : std::stoll(last.substr(1));
    const std::string name = "v" + std::to_string(width);
    AddFloats(graph, name + ".w", {from, width},
              std::vector<float>(static_cast<std::size_t>(from * width), 0.01F));
    AddNode(graph, "MatMul", {last, name + ".w"}, name);
    last = name;
  }
  AddInt(AddNode(graph, "ReduceSum", {last}, "y"), "keepdims", 0);
  const Outcome outcome = CompileProto(model, OnDevice());
  REQUIRE(outcome.message.empty());
  CHECK(outcome.compiled.device_arena_bytes == (48 + 32) * 64 * 4);
  const Result<Executable> executable = Executable::FromModule(Module(outcome.compiled.module));
  REQUIRE(executable);
  const Program program = Program::Link(*executable).value();
  const MemoryBound bound = program.TryMemoryBound().value();
  REQUIRE(bound.devices.size() == 1);
  // Beside the arena: x there, and the sum, which leaves the function over a copy.
  const std::uint64_t arena = outcome.compiled.device_arena_bytes;
  CHECK(bound.devices[0].bytes >= arena + 64 * 16 * 4);
  CHECK(bound.devices[0].bytes <= arena + 64 * 16 * 4 + 64 + LibraryScratch());
  VirtualMachine vm(program);
  std::vector<float> x(64 * 16, 0.5F);
  vm.SetInput("x", TensorView(x.data(), {64, 16}));
  vm.Invoke();
  CheckPeak(vm.bytes_peak(), bound.bytes);
}

TEST_CASE("each side's arena holds the tensors of that side alone") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {64, 32});
  SetValue(graph->add_output(), "y", {});
  AddFloats(graph, "w", {32, 16}, std::vector<float>(512, 0.03125F));
  AddFloats(graph, "v", {16, 16}, std::vector<float>(256, 0.0625F));
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "MatMul", {"a", "v"}, "b");
  // The device's kernels take no f64.
  AddInt(AddNode(graph, "Cast", {"b"}, "long"), "to", onnx::TensorProto::DOUBLE);
  AddNode(graph, "MatMul", {"long", "long_v"}, "c");
  onnx::TensorProto* weights = AddWeight(graph, "long_v", onnx::TensorProto::DOUBLE, {16, 16});
  for (int i = 0; i < 256; ++i) weights->add_double_data(0.0625);
  AddInt(AddNode(graph, "Cast", {"c"}, "y"), "to", onnx::TensorProto::FLOAT);
  const Outcome outcome = CompileProto(model, OnDevice());
  INFO(outcome.message);
  REQUIRE(outcome.message.empty());
  CHECK(outcome.compiled.device_calls == 2);
  CHECK(outcome.compiled.device_arena_bytes == 2 * 64 * 16 * 4);  // a and b
  CHECK(outcome.compiled.arena_bytes == 2 * 64 * 16 * 8);         // `long` and c
  const Answer expected = RunOnCounts(Module(CompileProto(model).compiled.module), {64, 32});
  const Answer given = RunOnCounts(Module(outcome.compiled.module), {64, 32});
  CHECK(given.error == "");
  REQUIRE(given.values.size() == expected.values.size());
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    CHECK(given.values[i] == Approx(expected.values[i]).epsilon(1e-4));
  }
}

// Runs the model and compares what the VM held with the bound. x counts in eighths.
void CheckBound(const onnx::ModelProto& model, const Shape& shape, const char* kernel) {
  const Outcome outcome = CompileProto(model, OnDevice());
  INFO(outcome.message << kernel);
  REQUIRE(outcome.message.empty());
  const Module& module = outcome.compiled.module;
  CHECK(std::any_of(module.kernels.begin(), module.kernels.end(),
                    [&](const auto& each) { return each.name == kernel; }));
  const Result<Executable> executable = Executable::FromModule(Module(module));
  REQUIRE(executable);
  const Program program = Program::Link(*executable).value();
  const MemoryBound bound = program.TryMemoryBound().value();
  CHECK(bound.unbounded == "");
  CHECK(bound.undeclared_workspace.empty());
  std::vector<float> x(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 23) * 0.125F;
  VirtualMachine vm(program);
  vm.SetInput("x", TensorView(x.data(), DTypeOf<float>(), shape));
  vm.Invoke();
  CheckPeak(vm.bytes_peak(), bound.bytes);
}

TEST_CASE("a bound of a device's memory has the scratch memory of kernels that take some") {
  onnx::ModelProto model = EmptyModel(14);
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("top_k") {
    SetValue(graph->add_input(), "x", {40, 300});
    SetValue(graph->add_output(), "y", {});
    AddInts(graph, "k", {200});
    AddNode(graph, "TopK", {"x", "k"}, "y")->add_output("places");
    CheckBound(model, {40, 300}, "rewire.device.top_k");
  }
  SECTION("recurrent layers") {
    const auto kind = GENERATE(std::pair("RNN", 1), std::pair("GRU", 3), std::pair("LSTM", 4));
    const char* const type = kind.first;
    const std::int64_t gates = kind.second;
    const std::int64_t directions = GENERATE(1, 2);
    SetValue(graph->add_input(), "x", {20, 3, 12});
    SetValue(graph->add_output(), "y", {});
    const std::int64_t hidden = 24;
    const auto weights = [&](const char* name, std::int64_t columns) {
      const std::vector<std::int64_t> dims = {directions, gates * hidden, columns};
      AddFloats(graph, name, dims,
                std::vector<float>(static_cast<std::size_t>(directions * gates * hidden * columns), 0.03F));
    };
    weights("w", 12);
    weights("r", hidden);
    onnx::NodeProto* layer = AddNode(graph, type, {"x", "w", "r"}, "y");
    AddInt(layer, "hidden_size", hidden);
    if (directions == 2) AddString(layer, "direction", "bidirectional");
    std::string kernel = type;
    for (char& letter : kernel) letter = static_cast<char>(std::tolower(letter));
    CheckBound(model, {20, 3, 12}, ("rewire.device." + kernel).c_str());
  }
}

}  // namespace
}  // namespace rewire::test
