// SPDX-License-Identifier: Apache-2.0
// Inputs that are passed with a call: the run takes over the references, and gives back each of them once.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

constexpr char kPrograms[] = R"(
.const c: f32[4] = {5, 6, 7, 8}
.kernel check = "check"
.func first(x: f32[4], y: f32[4]) -> f32[4]
  kill %y
  ret %x
.end
.func both(x: f32[4], y: f32[4]) -> value
  %r = alloc_adt tag=0 (%x, %y, %x)
  ret %r
.end
.func failing(x: f32[4], y: f32[4]) -> f32[4]
  invoke_packed check(%x, %y), outputs=0
  ret %x
.end
.func constant() -> f32[4]
  %c = load_const c
  ret %c
.end)";

Program TestProgram() {
  LinkOptions options;
  options.kernels.AddFunction("check", MakePackedFunction([](kernel::TensorView x, kernel::TensorView /*y*/) {
                                return x.data<float>()[0] < 0 ? kernel::RuntimeError("negative")
                                                              : kernel::Status();
                              }));
  return ProgramOf(kPrograms, std::move(options));
}

// A tensor over memory of the host's that is given back when nothing refers to it.
struct Watched {
  explicit Watched(float first, bool strided = false)
      : memory(std::make_shared<std::vector<float>>(8, first)) {
    const std::vector<std::int64_t> shape = {4};
    const std::vector<std::int64_t> strides = {strided ? 2 : 1};
    value = Value(*Tensor::Wrap(TensorView(memory->data(), kFloat32, shape, kHost, strides), memory));
  }
  bool Held() const { return memory.use_count() > 1; }
  std::shared_ptr<std::vector<float>> memory;
  Value value;
};

// A host may run over a pooled VM, and over one of its own.
Result<Value> RunBy(int way, const Program& program, VirtualMachine& vm, const char* function,
                    const std::vector<Value>& inputs) {
  return way == 0 ? program.TryRun(function, inputs) : vm.TryInvoke(function, inputs);
}

TEST_CASE("inputs of a call are held as long as the caller or a result holds them, and no longer") {
  const Program program = TestProgram();
  VirtualMachine vm(program);
  const int way = GENERATE(0, 1);
  const bool strided = GENERATE(false, true);
  const char* const function = GENERATE("first", "both");
  CAPTURE(way, strided, function);
  for (int round = 0; round < 3; ++round) {
    Watched x(1, strided);
    Watched y(2);
    std::optional<Value> result = *RunBy(way, program, vm, function, {x.value, y.value});
    REQUIRE(MessageOf(vm.TryDropResult()).empty());
    REQUIRE(x.Held());
    REQUIRE(y.Held());
    y.value = Value();
    CHECK(y.Held() == (function == std::string("both")));
    x.value = Value();
    CHECK(x.Held() == !strided);  // a copy of a strided one is returned
    const Tensor first = result->kind() == ValueKind::kAdt ? result->field(2).tensor() : result->tensor();
    CHECK(FloatsOf(first) == std::vector<float>{1, 1, 1, 1});
    result.reset();
    CHECK(x.Held() == !strided);
  }
}

TEST_CASE("inputs of a call that fails are let go, before the run and in it") {
  const Program program = TestProgram();
  VirtualMachine vm(program);
  const int way = GENERATE(0, 1);
  for (int round = 0; round < 3; ++round) {
    Watched x(-1);
    Watched y(2);
    CHECK(MessageOf(RunBy(way, program, vm, "failing", {x.value, y.value})).find("negative") !=
          std::string::npos);
    CHECK(MessageOf(RunBy(way, program, vm, "failing", {x.value, Value(*Tensor::Make(kInt32, {4}))})) ==
          "function failing, input 1 (y): f32[4] expected, i32[4] given");
    CHECK(MessageOf(RunBy(way, program, vm, "failing", {Value(Floats({1, 2, 3, 4, 5})), y.value})) ==
          "function failing, input 0 (x): f32[4] expected, f32[5] given");
    CHECK(x.value.tensor().data<float>()[0] == -1);
    x.value = Value();
    y.value = Value();
    CHECK_FALSE(x.Held());
    CHECK_FALSE(y.Held());
  }
}

TEST_CASE("a constant that is passed with calls outlives them and its Program") {
  std::optional<Program> program = TestProgram();
  const Value constant = *program->TryRun("constant", Span<const Value>());
  const std::uint64_t references = ObjectOf(constant.any())->combined_ref_count;
  for (int round = 0; round < 100; ++round) {
    REQUIRE(program->TryRun("first", std::vector<Value>{constant, constant}).has_value());
    REQUIRE(program->TryRun("failing", std::vector<Value>{constant, constant}).has_value());
  }
  CHECK(ObjectOf(constant.any())->combined_ref_count == references);
  program.reset();
  CHECK(FloatsOf(constant.tensor()) == std::vector<float>{5, 6, 7, 8});
}

TEST_CASE("the same tensor may be every input of a call, and an output may be bound beside it") {
  const Program program = TestProgram();
  float memory[4] = {};
  Watched x(3);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(program.TryRun("both", std::vector<Value>{x.value, x.value}).has_value());
    const std::vector<OutputBinding> bound = {{*program.FindOutput(0u, "first"), TensorView(memory, {4})}};
    REQUIRE(MessageOf(program.TryRun("first", std::vector<Value>{x.value, x.value}, bound)).empty());
    CHECK(memory[3] == 3);
    memory[3] = 0;
  }
  x.value = Value();
  CHECK_FALSE(x.Held());
}

// Looks at the last result in the middle of a run.
class Looking : public Observer {
 public:
  explicit Looking(const VirtualMachine* vm) : vm_(vm) {}
  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction& /*at*/) override { first = FloatsOf(vm_->result().tensor())[0]; }
  float first = 0;

 private:
  const VirtualMachine* vm_;
};

TEST_CASE(
    "a result that is set as an input is held as long as one of them needs it, and can be looked at in a "
    "run") {
  const Program program = TestProgram();
  VirtualMachine vm(program);
  Watched x(1);
  Watched y(2);
  const bool last_is_first = GENERATE(true, false);
  const auto set = [&](const Value& first, const Value& second) {
    REQUIRE(MessageOf(vm.TrySetInput(*program.FindInput(0u, "first"), first)).empty());
    REQUIRE(MessageOf(vm.TrySetInput(*program.FindInput(1u, "first"), second)).empty());
  };
  set(x.value, y.value);
  REQUIRE(MessageOf(vm.TryInvoke("first")).empty());
  for (int round = 0; round < 3; ++round) {
    // The register of the second input is killed in the run.
    set(last_is_first ? vm.result() : y.value, last_is_first ? y.value : vm.result());
    Looking looking(&vm);
    REQUIRE(MessageOf(vm.TrySetObserver(&looking)).empty());
    REQUIRE(MessageOf(vm.TryInvoke("first")).empty());
    REQUIRE(MessageOf(vm.TrySetObserver(nullptr)).empty());
    CHECK(looking.first == (last_is_first || round == 0 ? 1 : 2));
    set(x.value, x.value);
    REQUIRE(MessageOf(vm.TryInvoke("first")).empty());
    set(vm.result(), vm.result());
    REQUIRE(MessageOf(vm.TryInvoke("first")).empty());
    CHECK(FloatsOf(vm.result().tensor())[0] == 1);
    set(y.value, y.value);
    REQUIRE(MessageOf(vm.TryInvoke("first")).empty());
    if (last_is_first) {
      set(x.value, x.value);
      REQUIRE(MessageOf(vm.TryInvoke("first")).empty());
    }
  }
  REQUIRE(MessageOf(vm.TryClearInputs("first")).empty());
  x.value = Value();
  y.value = Value();
  CHECK(x.Held() == last_is_first);
  CHECK(y.Held() == !last_is_first);
  REQUIRE(MessageOf(vm.TryDropResult()).empty());
  CHECK_FALSE(x.Held());
  CHECK_FALSE(y.Held());
}

}  // namespace
}  // namespace rewire::test
