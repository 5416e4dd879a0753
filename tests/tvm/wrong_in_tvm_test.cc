// SPDX-License-Identifier: Apache-2.0
// TVM's Relay VM (0.14 was run) gives a wrong answer, corrupts memory or ends the process here: one test for
// each, of what is right. wrong_files_test.cc has those that come from the file.
#include <catch2/catch.hpp>
#include <vector>

#include "rewire/tests/tvm/relay_program.h"

namespace rewire::test {
namespace {

using Catch::Matchers::Contains;

using Floats6 = std::vector<float>;
const Floats6 kCounted = {1, 2, 3, 4, 5, 6};

// Memory as a caller binds it, aligned as imported kernels ask.
struct Buffer {
  alignas(64) float elements[6] = {-1, -1, -1, -1, -1, -1};
  TensorView View(std::vector<std::int64_t> shape = {6}) { return {elements, kFloat32, shape}; }
  Floats6 values() const { return {std::begin(elements), std::end(elements)}; }
};

Floats6 FloatsIn(const Value& value) {
  const Tensor tensor = value.tensor();
  REQUIRE(tensor);
  const auto* data = tensor.data<float>();
  return {data, data + tensor.view().size()};
}

std::string Message(const Status& status) { return status ? "" : status.error().message(); }

// x counted from 1, six elements, as input 0.
void SetCounted(VirtualMachine& vm, Buffer& memory) {
  std::copy(kCounted.begin(), kCounted.end(), memory.elements);
  vm.SetInput(0, memory.View());
}

TEST_CASE("If compares 64-bit integers in full") {
  const Program program = LinkRelay(
      {"x", "y"}, {{kIf, 0, 1, 1, 3}, {kLoadConsti, 1, 2}, {kGoto, 2}, {kLoadConsti, 0, 2}, {kRet, 2}});
  VirtualMachine vm(program);
  std::int64_t five = 5, other = 5;
  vm.SetInput(0, TensorView(&five, {}));
  vm.SetInput(1, TensorView(&other, {}));
  vm.Invoke();
  CHECK(vm.result().integer() == 1);
  other += std::int64_t{1} << 32;
  vm.Invoke();
  CHECK(vm.result().integer() == 0);
}

TEST_CASE("scalars and shapes are read at their byte offset") {
  const std::vector<std::int64_t> scalar, pair = {2};
  std::int64_t numbers[] = {9, 5, 3, 2, 24};
  const auto at = [&](std::uint64_t element, const std::vector<std::int64_t>& shape) {
    return TensorView(numbers, kInt64, shape, kHost, {}, element * sizeof(std::int64_t));
  };
  SECTION("by If") {
    VirtualMachine vm(LinkRelay({"x"}, {{kLoadConsti, 5, 1},
                                        {kIf, 0, 1, 1, 3},
                                        {kLoadConsti, 1, 2},
                                        {kGoto, 2},
                                        {kLoadConsti, 0, 2},
                                        {kRet, 2}}));
    vm.SetInput(0, at(1, scalar));
    vm.Invoke();
    CHECK(vm.result().integer() == 1);
  }
  SECTION("by ReshapeTensor") {
    VirtualMachine vm(LinkRelay({"x", "shape"}, {{kReshape, 0, 1, 2}, {kRet, 2}}));
    Buffer x;
    SetCounted(vm, x);
    vm.SetInput(1, at(2, pair));
    vm.Invoke();
    CHECK(vm.result().tensor().shape()[0] == 3);
    CHECK(FloatsIn(vm.result()) == kCounted);
  }
  SECTION("by AllocStorage and AllocTensorReg") {
    VirtualMachine vm(LinkRelay({"size", "shape"}, {{kAllocStorage, 0, 64, 2, 32, 1, 0, 0, 2},
                                                    {kLoadConst, kZero, 0, 3},
                                                    {kAllocTensorReg, 2, 3, 1, 2, 32, 1, 4},
                                                    Call(kFillOne, {4}),
                                                    {kRet, 4}}));
    vm.SetInput(0, at(4, scalar));
    vm.SetInput(1, at(2, pair));
    vm.Invoke();
    CHECK(FloatsIn(vm.result()) == Floats6(6, 1));
  }
}

TEST_CASE("ReshapeTensor wants exactly the tensor's elements") {
  VirtualMachine vm(LinkRelay({"x", "shape"}, {{kReshape, 0, 1, 2}, {kRet, 2}}));
  Buffer x;
  SetCounted(vm, x);
  std::int64_t shape[] = {2, 2};
  vm.SetInput(1, TensorView(shape, {2}));
  const std::string message = Message(vm.TryInvoke());
  CHECK_THAT(message, Contains("main@0 (%2 = reshape_tensor"));
  CHECK_THAT(message, Contains("[2, 2]"));
}

TEST_CASE("a failed invocation leaves neither frames nor outputs behind") {
  // inner(x): fails when x is 0, else x + 1 in floats of six.
  const Program program =
      LinkRelay(RelayOf({FunctionOf("main", {"x", "fails"}, {{kInvoke, 1, 2, 2, 0, 1}, {kRet, 2}}),
                         FunctionOf("inner", {"x", "fails"},
                                    Join({{{kLoadConsti, 0, 2}, {kIf, 1, 2, 2, 1}, {kFatal}},
                                          MakeTensor(3, {6}),
                                          {Call(kInc, {0, 3}), {kRet, 3}}}))}));
  VirtualMachine vm(program);
  Buffer x, out;
  std::copy(kCounted.begin(), kCounted.end(), x.elements);
  const Tensor input = *Tensor::Wrap(x.View(), nullptr);
  const std::vector<Value> good = {Value(input), Value(std::int64_t{0})};
  const std::vector<Value> bad = {Value(input), Value(std::int64_t{1})};
  REQUIRE(vm.TryInvoke("main", good));
  const std::vector<OutputBinding> binding = {{0, out.View()}};
  CHECK_FALSE(vm.TryInvoke("main", bad, binding));
  Result<Value> after = vm.TryInvoke("main", good);
  REQUIRE(after);
  CHECK(FloatsIn(*after) == Floats6{2, 3, 4, 5, 6, 7});
  CHECK(out.values() == Floats6(6, -1));  // of the failed call, not of this one
  after = Value();
  const std::uint64_t held = vm.bytes_held();
  CHECK_FALSE(vm.TryInvoke("main", bad, binding));
  REQUIRE(vm.TryInvoke("main", good));
  CHECK(vm.bytes_held() == held);
}

TEST_CASE("one VM runs two functions, each with its outputs") {
  const Program program = LinkRelay(
      RelayOf({FunctionOf("short", {"x"}, Join({MakeTensor(1, {6}), {Call(kInc, {0, 1}), {kRet, 1}}})),
               FunctionOf("long", {"x"},
                          Join({MakeTensor(1, {6}),
                                {Call(kInc, {0, 1})},
                                MakeTensor(2, {6}),
                                {Call(kInc, {1, 2})},
                                MakeTensor(3, {6}),
                                {Call(kAdd, {1, 2, 3}), {kRet, 3}}}))}));
  VirtualMachine vm(program);
  Buffer x, of_short, of_long;
  std::copy(kCounted.begin(), kCounted.end(), x.elements);
  for (const char* name : {"short", "long"}) {
    vm.SetInput(*program.FindInput(0, name), x.View());
    vm.SetOutput(*program.FindOutput(0, name), (name[0] == 's' ? of_short : of_long).View());
  }
  for (int i = 0; i < 2; ++i) {
    vm.Invoke("long");
    vm.Invoke("short");
  }
  CHECK(of_short.values() == Floats6{2, 3, 4, 5, 6, 7});
  CHECK(of_long.values() == Floats6{5, 7, 9, 11, 13, 15});
}

TEST_CASE("a callee may allocate into the register number of the caller's output") {
  const Code inc = Join({MakeTensor(2, {6}), {Call(kInc, {0, 2}), {kRet, 2}}});
  const Program program = LinkRelay(RelayOf(
      {FunctionOf("main", {"x"},
                  Join({MakeTensor(2, {6}),
                        {Call(kInc, {0, 2}), {kInvoke, 1, 1, 3, 2}, {kAllocAdt, 0, 2, 4, 2, 3}, {kRet, 4}}})),
       FunctionOf("inner", {"x"}, inc)}));
  VirtualMachine vm(program);
  Buffer x, first, second;
  SetCounted(vm, x);
  vm.SetOutput("output.0", first.View());
  vm.SetOutput("output.1", second.View());
  vm.Invoke();
  CHECK(first.values() == Floats6{2, 3, 4, 5, 6, 7});
  CHECK(second.values() == Floats6{3, 4, 5, 6, 7, 8});
  CHECK_FALSE(vm.TryOutputReport("output.0")->copied);
  CHECK_FALSE(vm.TryOutputReport("output.1")->copied);
}

// Runs main with both fields of its tuple bound, and checks both.
void CheckTuple(Code code, const Floats6& expected, const std::vector<std::int64_t>& second_shape = {6}) {
  VirtualMachine vm(LinkRelay({"x"}, std::move(code)));
  Buffer x, first, second;
  SetCounted(vm, x);
  vm.SetOutput("output.0", first.View());
  vm.SetOutput("output.1", second.View(second_shape));
  vm.Invoke();
  CHECK(first.values() == Floats6{2, 3, 4, 5, 6, 7});
  CHECK(second.values() == expected);
}

TEST_CASE("a tuple's field that is an input reaches the caller's memory") {
  CheckTuple(Join({MakeTensor(1, {6}), {Call(kInc, {0, 1}), {kAllocAdt, 0, 2, 2, 1, 0}, {kRet, 2}}}),
             kCounted);
}
TEST_CASE("a tuple's field that is used twice reaches the caller's memory twice") {
  CheckTuple(Join({MakeTensor(1, {6}), {Call(kInc, {0, 1}), {kAllocAdt, 0, 2, 2, 1, 1}, {kRet, 2}}}),
             {2, 3, 4, 5, 6, 7});
}
TEST_CASE("a tuple's field that is a constant reaches the caller's memory") {
  CheckTuple(
      Join({MakeTensor(1, {6}),
            {Call(kInc, {0, 1}), {kLoadConst, kNumbers, 0, 3}, {kAllocAdt, 0, 2, 2, 1, 3}, {kRet, 2}}}),
      kCounted);
}
TEST_CASE("a tuple's field that is reshaped reaches the caller's memory") {
  CheckTuple(Join({MakeTensor(1, {6}),
                   {Call(kInc, {0, 1})},
                   MakeTensor(3, {6}),
                   {Call(kInc, {1, 3}),
                    {kLoadConst, kShape3x2, 0, 4},
                    {kReshape, 3, 4, 5},
                    {kAllocAdt, 0, 2, 2, 1, 5},
                    {kRet, 2}}}),
             {3, 4, 5, 6, 7, 8}, {3, 2});
}

TEST_CASE("an output in the memory of an input has the values of a run without it") {
  // x is read once more after the first write to the output.
  VirtualMachine vm(LinkRelay({"x"}, Join({MakeTensor(1, {6}),
                                           {Call(kInc, {0, 1})},
                                           MakeTensor(2, {6}),
                                           {Call(kFillOne, {2}), Call(kAdd, {0, 1, 2}), {kRet, 2}}})));
  Buffer x;
  SetCounted(vm, x);
  vm.SetOutput(0, x.View());
  vm.Invoke();
  CHECK(x.values() == Floats6{3, 5, 7, 9, 11, 13});
}

TEST_CASE("branches may each allocate the result, and may join by Move") {
  const Code then = Join({MakeTensor(2, {6}), {Call(kInc, {0, 2})}});  // 4 instructions
  SECTION("each returns") {
    VirtualMachine vm(LinkRelay({"x", "c"}, Join({{{kLoadConsti, 1, 5}, {kIf, 1, 5, 1, 6}},
                                                  then,
                                                  {{kRet, 2}},
                                                  MakeTensor(3, {6}),
                                                  {Call(kFillOne, {3}), {kRet, 3}}})));
    for (const std::int64_t condition : {1, 0}) {
      Buffer x, out;
      SetCounted(vm, x);
      REQUIRE(vm.TrySetInput(InputHandle{0, 1}, Value(condition)));
      vm.SetOutput(0, out.View());
      vm.Invoke();
      CHECK(out.values() == (condition == 1 ? Floats6{2, 3, 4, 5, 6, 7} : Floats6(6, 1)));
      CHECK_FALSE(vm.TryOutputReport(0)->copied);
    }
  }
  SECTION("joined by Move") {
    VirtualMachine vm(LinkRelay({"x", "c"}, Join({{{kLoadConsti, 1, 5}, {kIf, 1, 5, 1, 7}},
                                                  then,
                                                  {{kMove, 2, 4}, {kGoto, 6}},
                                                  MakeTensor(3, {6}),
                                                  {Call(kFillOne, {3}), {kMove, 3, 4}, {kRet, 4}}})));
    for (const std::int64_t condition : {1, 0}) {
      Buffer x, out;
      SetCounted(vm, x);
      REQUIRE(vm.TrySetInput(InputHandle{0, 1}, Value(condition)));
      vm.SetOutput(0, out.View());
      vm.Invoke();
      CHECK(out.values() == (condition == 1 ? Floats6{2, 3, 4, 5, 6, 7} : Floats6(6, 1)));
      CHECK_FALSE(vm.TryOutputReport(0)->copied);
    }
  }
}

TEST_CASE("a failure inside AllocStorage is an error of the run") {
  // size bytes, and a tensor on them so that they are taken.
  const Program program = LinkRelay({"size"}, {{kAllocStorage, 0, 64, 2, 32, 1, 0, 0, 1},
                                               {kLoadConst, kZero, 0, 2},
                                               {kAllocTensor, 1, 2, 2, 32, 1, 1, 3, 1},
                                               Call(kFillOne, {3}),
                                               {kRet, 3}});
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(program, limits);
  const auto run = [&](std::int64_t size) {
    REQUIRE(vm.TrySetInput(InputHandle{0, 0}, Value(size)));
    return vm.TryInvoke();
  };
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{2} << 20, INT64_MAX, INT64_MIN}) {
    const Status status = run(size);
    INFO(size);
    REQUIRE_FALSE(status);
    CHECK_THAT(status.error().message(), Contains("main@"));
  }
  CHECK(run(4));
}

}  // namespace
}  // namespace rewire::test
