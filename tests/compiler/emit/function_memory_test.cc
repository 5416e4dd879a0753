// SPDX-License-Identifier: Apache-2.0
// The memory of a compiled model is known before it runs where shapes are known or bounded, and taken once.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/malloc_watch.h"
#include "rewire/tests/support/test_allocator.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

// Three layers over x: f32[rows, 32].
onnx::ModelProto Layers(const Dim& rows) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {rows, 32});
  AddFloats(graph, "w", {32, 32}, std::vector<float>(1024, 0.125F));
  AddNode(graph, "Exp", {"x"}, "start");
  std::string last = "start";
  for (const char* layer : {"a", "b", "c"}) {
    AddNode(graph, "MatMul", {last, "w"}, std::string(layer) + ".product");
    AddNode(graph, "Tanh", {std::string(layer) + ".product"}, layer);
    AddNode(graph, "Add", {layer, "x"}, std::string(layer) + ".sum");
    last = std::string(layer) + ".sum";
  }
  AddInt(AddNode(graph, "Softmax", {last}, "y"), "axis", -1);
  SetValue(graph->add_output(), "y", {});
  return model;
}

struct Loaded {
  explicit Loaded(const onnx::ModelProto& model, const compiler::CompileOptions& options = {}) {
    Outcome outcome = CompileProto(model, options);
    REQUIRE(outcome.message.empty());
    const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
    REQUIRE(executable);
    LinkOptions link;
    link.allocator = allocator.allocator();
    Result<Program> linked = Program::Link(*executable, std::move(link));
    REQUIRE(linked);
    program.emplace(*std::move(linked));
  }

  MemoryBound Bound(bool outputs_bound) const {
    MemoryBoundOptions options;
    options.outputs_bound = outputs_bound;
    const Result<MemoryBound> bound = program->TryMemoryBound({}, options);
    REQUIRE(bound);
    CHECK(bound->unbounded.empty());
    return *bound;
  }

  TestAllocator allocator;
  std::optional<Program> program;
};

// Aligned as the bound asks.
struct Rows {
  explicit Rows(std::int64_t rows)
      : count(rows), data(static_cast<float*>(::operator new (bytes(), std::align_val_t{64}))) {
    std::fill_n(data, 32 * rows, 0.5F);
  }
  ~Rows() { ::operator delete (data, std::align_val_t{64}); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  TensorView view() const { return TensorView(data, {count, 32}); }
  std::size_t bytes() const { return static_cast<std::size_t>(count) * 32 * sizeof(float); }

  std::int64_t count;
  float* data;
};

TEST_CASE("a static model takes what its bound says") {
  const Loaded model(Layers(40));
  const Rows x(40), y(40);
  const bool bind = GENERATE(false, true);
  const MemoryBound bound = model.Bound(bind);
  const auto run = [&](VirtualMachine* vm) {
    REQUIRE(vm->TrySetInput("x", x.view()));
    if (bind) REQUIRE(vm->TrySetOutput("y", y.view()));
    return vm->TryInvoke();
  };
  SECTION("of a VM's own") {
    VirtualMachine vm(*model.program);
    REQUIRE(run(&vm));
    CHECK(vm.bytes_peak() == bound.bytes);
  }
  SECTION("as one block, and in no less than its data") {
    const auto in = [&](std::uint64_t bytes) {
      void* block = ::operator new (bytes, std::align_val_t{128});
      bool ran = false;
      {
        VmOptions options;
        options.memory = {block, bytes};
        Result<VirtualMachine> vm = VirtualMachine::TryMake(*model.program, options);
        ran = vm && run(&*vm);
      }
      ::operator delete (block, std::align_val_t{128});
      return ran;
    };
    CHECK(in(bound.static_bytes));
    CHECK_FALSE(in(bound.storage));
  }
  SECTION("as an arena") {
    Result<SharedArena> arena = SharedArena::TryMake(bound.arena_bytes);
    REQUIRE(arena);
    VmOptions options;
    options.arena = *arena;
    Result<VirtualMachine> vm = VirtualMachine::TryMake(*model.program, options);
    REQUIRE(vm);
    CHECK(run(&*vm));
  }
}

TEST_CASE("a dynamic model allocates nothing for a shape that it has seen") {
  Loaded model(Layers("N"));
  VirtualMachine vm(*model.program);
  const Rows few(3), some(40), many(200);
  const auto run = [&](const Rows& x) {
    const std::int64_t before = model.allocator.calls();
    StartMallocWatch();
    const bool ran = vm.TrySetInput("x", x.view()) && vm.TryInvoke();
    vm.DropResult();
    const std::uint64_t mallocs = StopMallocWatch();
    CHECK(ran);
    return std::pair(model.allocator.calls() - before, mallocs);
  };
  for (const Rows* x : {&few, &many, &some}) CHECK(run(*x).first > 0);
  // Neither the program's allocator nor, by kernels and functions of shapes, the process's.
  for (int i = 0; i < 20; ++i) {
    for (const Rows* x : {&many, &few, &some, &few})
      CHECK(run(*x) == std::pair(std::int64_t{0}, std::uint64_t{0}));
  }
}

TEST_CASE("a largest size makes the memory of a dynamic model known") {
  compiler::CompileOptions options;
  options.max_dims = {{"N", 64}};
  const Loaded model(Layers("N"), options);
  CHECK(model.program->executable().module().symbol_limits == std::vector<std::int64_t>{64});
  const MemoryBound bound = model.Bound(false);
  for (const std::int64_t rows : {64, 7, 1}) {
    const Rows x(rows);
    VirtualMachine vm(*model.program);
    REQUIRE(vm.TrySetInput("x", x.view()));
    REQUIRE(vm.TryInvoke());
    CHECK(vm.bytes_peak() <= bound.bytes);
    // The layers' workspace is of one shape, so they take the same.
    if (rows == 64) CHECK(vm.bytes_peak() == bound.bytes);
  }
  const Rows x(65);
  VirtualMachine vm(*model.program);
  const Status refused = vm.TrySetInput("x", x.view());
  REQUIRE_FALSE(refused);
  CHECK(
      refused.error().message() ==
      "function main, input 0 (x): f32[N, 32] expected, f32[65, 32] given; the program was compiled for N of "
      "at most 64");
}

TEST_CASE("with a largest size the first run takes all memory that any needs") {
  compiler::CompileOptions options;
  options.max_dims = {{"N", 64}};
  // No kernel of these takes workspace.
  onnx::ModelProto layers = EmptyModel();
  onnx::GraphProto* graph = layers.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 32});
  AddNode(graph, "Transpose", {"x"}, "turned");
  AddNode(graph, "Tanh", {"turned"}, "bent");
  AddNode(graph, "Transpose", {"bent"}, "back");
  AddNode(graph, "Add", {"back", "x"}, "sum");
  AddInt(AddNode(graph, "ReduceMax", {"sum"}, "y"), "keepdims", 0);
  SetValue(graph->add_output(), "y", {});
  Loaded model(layers, options);
  const MemoryBound bound = model.Bound(false);
  VirtualMachine vm(*model.program);
  const auto run = [&](std::int64_t rows) {
    const Rows x(rows);
    const std::int64_t before = model.allocator.calls();
    CHECK((vm.TrySetInput("x", x.view()) && vm.TryInvoke()));
    vm.DropResult();
    return model.allocator.calls() - before;
  };
  CHECK(run(3) > 0);
  CHECK(vm.bytes_peak() == bound.bytes);
  for (const std::int64_t rows : {64, 1, 40, 3}) CHECK(run(rows) == 0);
}

TEST_CASE("a largest size of what no input has") {
  compiler::CompileOptions options;
  options.max_dims = {{"M", 64}};
  CHECK_THAT(CompileProto(Layers("N"), options).message,
             Catch::StartsWith("model: no input has a dimension \"M\""));
}

TEST_CASE("a dimension without a name goes by its place") {
  compiler::CompileOptions options;
  options.max_dims = {{"x.0", 8}};
  const Loaded bounded(Layers(""), options);
  CHECK(bounded.Bound(true).bytes > 0);
  options.max_dims.clear();
  options.dims = {{"x.0", 8}};
  const Loaded fixed(Layers(""), options);
  CHECK(fixed.program->executable().module().functions[0].inputs[0].type.nodes[0].dims ==
        std::vector<rewire::Dim>{8, 32});
}

}  // namespace
}  // namespace rewire::test
