// SPDX-License-Identifier: Apache-2.0
// Handles that were moved from, tensors without data, and elements asked for as another type: errors that say
// so.
#include <catch2/catch.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move,performance-move-const-arg): it is tested
// here.

constexpr char kText[] = R"(
.func main(x: f32[2]) -> y: f32[2]
  ret %x
.end
.func scalar(n: i64[]) -> y: value
  ret %n
.end
.func vector(n: i64[1]) -> y: value
  ret %n
.end
.func half(n: i32[]) -> y: value
  ret %n
.end
.func tree(t: (f32[2], i64[])) -> y: value
  ret %t
.end
.func any(v: value) -> y: value
  ret %v
.end)";

TEST_CASE("a VM that was moved from says so in every call") {
  const Program program = ProgramOf(kText);
  VirtualMachine vm(program);
  const float x[2] = {1, 2};
  vm.SetInput("x", TensorView(x, {2}));
  VirtualMachine moved = std::move(vm);
  float memory[2];
  const TensorView view(memory, {2});
  const Value value = Floats({1, 2});
  const OutputBinding binding{0, view};
  std::vector<Status> outcomes;
  outcomes.push_back(vm.TrySetInput("x", view));
  outcomes.push_back(vm.TrySetInput("x", value));
  outcomes.push_back(vm.TrySetInput(InputHandle{0, 0}, view));
  outcomes.push_back(vm.TrySetInputs("main", {&view, 1}));
  outcomes.push_back(vm.TrySetInputs(0, {&view, 1}));
  outcomes.push_back(vm.TryInputReport("x").status());
  outcomes.push_back(vm.TryClearInputs());
  outcomes.push_back(vm.TrySetOutput(0, view));
  outcomes.push_back(vm.TrySetOutput(OutputHandle{0, 0}, view));
  outcomes.push_back(vm.TrySetOutput(0, value.tensor()));
  outcomes.push_back(vm.TrySetOutput(0, OutputCapacity{memory, 8}));
  outcomes.push_back(vm.TrySetOutput(0, OutputAllocator{}));
  outcomes.push_back(vm.TryDonate(0, 0));
  outcomes.push_back(vm.TryClearOutput(0));
  outcomes.push_back(vm.TryClearOutputs());
  outcomes.push_back(vm.TryRequireZeroCopy(true));
  outcomes.push_back(vm.TryInvoke());
  outcomes.push_back(vm.TryInvoke(0u));
  outcomes.push_back(vm.TryInvoke("main", {&value, 1}).status());
  outcomes.push_back(vm.TryInvoke("main", {&value, 1}, {&binding, 1}));
  outcomes.push_back(vm.TryOutput("y").status());
  outcomes.push_back(vm.TryOutput(0u).status());
  outcomes.push_back(vm.TryOutputShape(0).status());
  outcomes.push_back(vm.TryOutputReport(0).status());
  outcomes.push_back(vm.TrySetLimits({}));
  outcomes.push_back(vm.TrySetDeadline({}));
  outcomes.push_back(vm.TrySetObserver(nullptr));
  outcomes.push_back(vm.TryDropResult());
  outcomes.push_back(vm.TryTrim());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    CAPTURE(i);
    REQUIRE_FALSE(outcomes[i].has_value());
    CHECK(outcomes[i].code() == StatusCode::kInvalidArgument);
    CHECK(MessageOf(outcomes[i]) == "this VirtualMachine is empty: it was moved from");
  }
  vm.Cancel();
  CHECK(vm.result().kind() == ValueKind::kNone);
  CHECK(vm.bytes_held() == 0);
  CHECK(vm.bytes_peak() == 0);
  moved.Invoke();
  CHECK(moved.Output(0).data<float>()[1] == 2);
  // And it can be filled again.
  vm = VirtualMachine(program);
  vm.SetInput("x", TensorView(x, {2}));
  vm.Invoke();
}

TEST_CASE("a Program that was moved from is as it was") {
  Program program = ProgramOf(kText);
  const Program moved = std::move(program);
  const Value x = Floats({1, 2});
  for (const Program* each : {&std::as_const(program), &moved}) {
    CHECK(FloatsOf(each->TryRun("main", {&x, 1})->tensor()) == std::vector<float>{1, 2});
    CHECK(each->executable().FindFunction("main").has_value());
  }
}

TEST_CASE("a view that was moved from, and one without data, are no tensors") {
  VirtualMachine vm(ProgramOf(kText));
  float memory[2] = {1, 2};
  TensorView view(memory, {2});
  const TensorView taken = std::move(view);
  CHECK(taken.data() == memory);
  const std::string input = "function main, input 0 (x): ";
  CHECK(MessageOf(vm.TrySetInput("x", view)).find(input) == 0);
  CHECK_FALSE(vm.TrySetOutput(0, view).has_value());
  CHECK_FALSE(Tensor::CopyOf(view).has_value());
  CHECK_FALSE(Tensor::Wrap(view, nullptr).has_value());
  CHECK_FALSE(vm.TrySetInput("x", Value()).has_value());
  CHECK_FALSE(vm.TrySetOutput(0, Tensor()).has_value());

  const TensorView nowhere(static_cast<float*>(nullptr), {2});
  CHECK(MessageOf(vm.TrySetInput("x", nowhere)) == input + "f32[2] has no data");
  vm.SetInput("x", taken);
  CHECK(MessageOf(vm.TrySetInput("x", nowhere)) == input + "f32[2] has no data");  // in place of another
  CHECK(MessageOf(vm.TrySetInput("x", nowhere, InputMode::kCopy)) == input + "f32[2] has no data");
  CHECK(MessageOf(Tensor::CopyOf(nowhere)) == "tensor: f32[2] has no data");
  CHECK(MessageOf(Tensor::Wrap(nowhere, nullptr)) == "tensor: f32[2] has no data");
  CHECK(MessageOf(vm.TrySetOutput(0, nowhere)) == "function main, output 0 (y): no memory given");
  vm.Invoke();  // with what was set before
  CHECK(vm.Output(0).data<float>()[1] == 2);
  const std::vector<std::int64_t> ones(40, 1);
  for (const auto& [dtype, dims, device, message] :
       {std::tuple(DLDataType{99, 32, 1}, ones, kHost, std::string("tensor: unknown element type ")),
        std::tuple(kFloat32, ones, kHost, std::string("tensor: rank 40 given, at most ")),
        std::tuple(kFloat32, std::vector<std::int64_t>{1}, DLDevice{kDLCUDA, 0},
                   std::string("tensor: only host memory can be copied here"))}) {
    const TensorView odd(memory, dtype, {dims.data(), dims.size()}, device);
    CHECK(MessageOf(Tensor::CopyOf(odd)).rfind(message, 0) == 0);
    if (device.device_type == kDLCPU) {
      CHECK(MessageOf(Tensor::Make(dtype, {dims.data(), dims.size()})).rfind(message, 0) == 0);
    }
  }
  // Nothing is nowhere.
  CHECK(Tensor::Wrap(TensorView(static_cast<float*>(nullptr), {0}), nullptr).has_value());

  DLTensor described{};
  described.ndim = -1;
  CHECK(TensorView(described).dtype().bits == 0);
  described.ndim = 2;
  CHECK(TensorView(described).shape().empty());
}

TEST_CASE("a view that is assigned another is const where the other is") {
  VirtualMachine vm(ProgramOf(kText));
  float memory[2] = {1, 2};
  const float fixed[2] = {3, 4};
  const TensorView constant(fixed, {2});
  TensorView copied(memory, {2}), moved(memory, {2});
  copied = constant;
  moved = TensorView(fixed, {2});
  for (const TensorView* view : {&copied, &moved}) {
    CHECK(view->read_only());
    CHECK(view->data() == fixed);
    CHECK(MessageOf(vm.TrySetOutput(0, *view)) ==
          "function main, output 0 (y): memory that is const cannot be written");
  }
  copied = TensorView(memory, {2});
  CHECK_FALSE(copied.read_only());
  CHECK(vm.TrySetOutput(0, copied).has_value());
}

TEST_CASE("a DLPack tensor that cannot be one is let go and refused") {
  static int deleted;
  deleted = 0;
  const auto refused = [](DLTensor dl, const std::string& message) {
    DLManagedTensor managed{dl, nullptr, [](DLManagedTensor*) { ++deleted; }};
    CHECK(MessageOf(Tensor::FromDLPack(&managed)) == message);
  };
  std::int64_t shape[1] = {2};
  float data[2] = {};
  const auto described = [&](void* memory, std::int64_t* dims, int rank) {
    return DLTensor{memory, kHost, rank, kFloat32, dims, nullptr, 0};
  };
  refused(described(nullptr, shape, 1), "tensor: f32[2] has no data");
  refused(described(data, nullptr, 1), "tensor: rank 1 given without a shape");
  CHECK(deleted == 2);
  CHECK(MessageOf(Tensor::FromDLPack(static_cast<DLManagedTensor*>(nullptr))) ==
        "tensor: no DLPack tensor given");
}

TEST_CASE("elements as another type than a tensor's are refused") {
  const Tensor floats = Floats({1, 2});
  CHECK(floats.data<float>()[1] == 2);
  CHECK(**floats.TryData<float>() == 1);
  CHECK(MessageOf(floats.TryData<double>()) == "tensor: f64 elements asked for, it is f32[2]");
  CHECK(MessageOf(floats.TryData<std::int32_t>()) == "tensor: i32 elements asked for, it is f32[2]");
  CHECK(MessageOf(Tensor().TryData<float>()) == "tensor: f32 elements asked for, there is no tensor");
  CHECK(MessageOf(Value(std::int64_t{3}).tensor().TryData<float>()) ==
        "tensor: f32 elements asked for, there is no tensor");
  CHECK_THROWS_AS(floats.data<double>(), Error);
  CHECK_THROWS_AS(Tensor().data<float>(), Error);
}

TEST_CASE("an integer is an input where a scalar of its width is, and nowhere else") {
  VirtualMachine vm(ProgramOf(kText));
  const Value seven(std::int64_t{7});
  const auto call = [&](const char* function, const Value& value) {
    return MessageOf(vm.TryInvoke(function, {&value, 1}));
  };
  CHECK(call("scalar", seven).empty());
  CHECK(call("any", seven).empty());
  CHECK(call("main", seven) == "function main, input 0 (x): f32[2] expected, i64[] given, for an integer");
  CHECK(call("vector", seven) ==
        "function vector, input 0 (n): i64[1] expected, i64[] given, for an integer");
  CHECK(call("half", seven) == "function half, input 0 (n): i32[] expected, i64[] given, for an integer");
  const Value good[] = {Floats({1, 2}), seven};
  const Value bad[] = {seven, seven};
  CHECK(call("tree", *Value::Adt(0, {good, 2})).empty());
  CHECK(call("tree", *Value::Adt(0, {bad, 2})) ==
        "function tree, input 0 (t): in its part 1 (in pre-order), f32[2] expected, i64[] given, for an "
        "integer");
}

// NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move,performance-move-const-arg)

}  // namespace
}  // namespace rewire::test
