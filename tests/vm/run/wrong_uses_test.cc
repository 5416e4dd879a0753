// SPDX-License-Identifier: Apache-2.0
// A host may do this wrong with a VM: the exact message, and the next call gives the right answer. Wrong
// bindings of outputs stand in outputs/ (table/wrong_uses.asm, bindings_test.cc), wrong parameters in
// parameters/bind_test.cc, wrong uses of arenas and static memory in bounded_memory_test.cc, of the C API in
// c_api/arguments_test.cc.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

constexpr char kProgram[] = R"(
.device fake = ext_dev:0
.param w: f32[2]
.kernel add = "host.add"
.func main(x: f32[2], pair: (f32[2], integer)) -> y: f32[2]
  %w = load_const w
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %a = alloc_tensor %s, _, f32[2]
  invoke_packed add(%x, %w, %a), outputs=1
  ret %a
.end
.func any(v: value) -> (r: value, f: closure)
  %f = alloc_closure main(%v, %v)
  %r = alloc_adt tag=0(%v, %f)
  ret %r
.end
.func there(d: f32[2] on fake) -> e: f32[2]
  %e = device_copy %d, fake, cpu
  ret %e
.end
.func back(x: f32[2]) -> d: value
  %d = device_copy %x, cpu, fake
  ret %d
.end
.func tree(v: value) -> (a: value, b: value)
  ret %v
.end)";

class WrongUses {
 public:
  WrongUses()
      : program_(Link()),
        vm_(program_),
        pair_(*Value::Adt(0, std::array<Value, 2>{Floats({0, 0}), Value(std::int64_t{7})})) {}

  VirtualMachine& vm() { return vm_; }
  const Program& program() const { return program_; }
  float* x() { return x_; }
  float* weights() { return weights_; }
  const Value& pair() const { return pair_; }

  // `outcome` is an error with this message, and the next call is right.
  template <typename T>
  void Check(const T& outcome, const std::string& message) {
    CHECK(MessageOf(outcome) == message);
    vm_.ClearOutputs();
    vm_.RequireZeroCopy(false);
    vm_.SetInput("x", TensorView(x_, {2}));
    vm_.SetInput("pair", pair_);
    vm_.Invoke();
    CHECK(FloatsOf(vm_.Output("y")) == std::vector<float>{11, 22});
  }

 private:
  Program Link() {
    LinkOptions options;
    options.devices.push_back(&device_.api);
    ParameterSet parameters;
    parameters.Set("w", *Tensor::Wrap(TensorView(weights_, {2}), nullptr));
    options.parameters.push_back(parameters);
    options.kernels.AddFunction("host.add", MakePackedFunction([](kernel::TensorView a, kernel::TensorView b,
                                                                  kernel::TensorView out) {
                                  for (int i = 0; i < 2; ++i)
                                    out.data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
                                }));
    return ProgramOf(kProgram, std::move(options));
  }

  FakeDevice device_;
  float x_[2] = {1, 2};
  alignas(64) float weights_[2] = {10, 20};
  Program program_;
  VirtualMachine vm_;
  Value pair_;
};

TEST_CASE("wrong inputs say what is wrong, and the next call is right") {
  WrongUses host;
  VirtualMachine& vm = host.vm();
  float three[3] = {};
  double doubles[2] = {};
  const TensorView x(host.x(), {2});
  const std::string main_x = "function main, input 0 (x): ";
  const std::string main_pair = "function main, input 1 (pair): ";

  host.Check(vm.TryInvoke(), main_x.substr(0, main_x.size() - 2) + " is not set; set it before invoking");
  REQUIRE(vm.TryClearInputs().has_value());
  vm.SetInput("x", x);
  host.Check(vm.TryInvoke(),
             main_pair.substr(0, main_pair.size() - 2) + " is not set; set it before invoking");
  host.Check(vm.TrySetInput("xx", x),
             "function main has no input named \"xx\"; did you mean 'x'? The inputs: x, pair");
  host.Check(vm.TrySetInput(2, x), "function main has 2 inputs, number 2 asked for");
  host.Check(vm.TrySetInput(InputHandle{9, 0}, x), "the input handle is not one of this Program's");
  host.Check(vm.TrySetInput("x", TensorView(three, {3})), main_x + "f32[2] expected, f32[3] given");
  host.Check(vm.TrySetInput("x", TensorView(three, {1})), main_x + "f32[2] expected, f32[1] given");
  host.Check(vm.TrySetInput("x", TensorView(doubles, {2})), main_x + "f32[2] expected, f64[2] given");
  host.Check(vm.TrySetInput("x", TensorView(host.x(), {2, 1})), main_x + "f32[2] expected, f32[2, 1] given");
  host.Check(vm.TrySetInput("x", TensorView(three, {-1})),
             main_x + "f32[-1] has a wrong element type, rank or dimension");
  host.Check(vm.TrySetInput("x", TensorView(three, DLDataType{9, 99, 1}, std::vector<std::int64_t>{2})),
             main_x + "code9_99[2] has a wrong element type, rank or dimension");
  host.Check(vm.TrySetInput("x", host.pair()), main_x + "f32[2] expected, an ADT given");
  host.Check(vm.TrySetInput("pair", x), main_pair + "(f32[2], integer) expected, a tensor given");
  host.Check(vm.TrySetInput("pair", Value(std::int64_t{3})),
             main_pair + "(f32[2], integer) expected, an integer given");
  const std::array<Value, 2> swapped = {Value(std::int64_t{7}), Floats({0, 0})};
  host.Check(vm.TrySetInput("pair", *Value::Adt(0, swapped)),
             main_pair + "in its part 1 (in pre-order), f32[2] expected, i64[] given, for an integer");
  host.Check(vm.TrySetInput("pair", *Value::Adt(0, {swapped.data(), 1})),
             main_pair + "an ADT with tag 0 and 2 fields expected, tag 0 and 1 fields given");
  host.Check(vm.TrySetInput("pair", *Value::Adt(4, swapped)),
             main_pair + "an ADT with tag 0 and 2 fields expected, tag 4 and 2 fields given");
  host.Check(vm.TrySetInputs("main", {&x, 1}), "function main takes 2 inputs, 1 given");
  host.Check(vm.TrySetInputs(std::uint32_t{77}, {&x, 1}), "there is no function 77");
  host.Check(vm.TryInputReport("z"), "function main has no input named \"z\"; the inputs: x, pair");
  REQUIRE(vm.TryClearInputs().has_value());
  host.Check(vm.TryInputReport("x"), "function main, input 0 (x) is not set");
}

TEST_CASE("inputs on devices say what is wrong, and the next call is right") {
  WrongUses host;
  VirtualMachine& vm = host.vm();
  const std::string there_d = "function there, input 0 (d): ";
  const InputHandle d = *host.program().FindInput("d", "there");
  const InputHandle x = *host.program().FindInput("x", "main");
  const std::vector<std::int64_t> strides = {2};
  const auto on = [](DLDeviceType type, Span<const std::int64_t> strides = {}) {
    const std::vector<std::int64_t> shape = {2};
    return TensorView(reinterpret_cast<void*>(64), kFloat32, shape, DLDevice{type, 0}, strides);
  };
  host.Check(vm.TrySetInput(d, on(kDLCUDA)),
             there_d + "f32[2]@1 expected, f32[2] given; device ext_dev:0 expected, cuda:0 given");
  host.Check(vm.TrySetInput(x, on(kDLCUDA)),
             "function main, input 0 (x): the executable does not name device cuda:0");
  host.Check(vm.TrySetInput(d, on(kDLExtDev, strides)),
             there_d + "memory of a device must be contiguous and aligned to 4 bytes, and cannot be copied");
  host.Check(vm.TrySetInput(d, on(kDLExtDev), InputMode::kCopy),
             there_d + "memory of a device must be contiguous and aligned to 4 bytes, and cannot be copied");
  const std::vector<std::int64_t> other = {3};
  host.Check(vm.TrySetInput(d, TensorView(host.x(), kFloat32, other)),
             there_d + "f32[2]@1 expected, f32[3] given; device ext_dev:0 expected, cpu given");

  VmOptions options;
  options.arena = *SharedArena::TryMake(1 << 20);
  VirtualMachine in_arena = VirtualMachine::Make(host.program(), options);
  host.Check(in_arena.TrySetInput(d, TensorView(host.x(), {2})),
             there_d + "a VM with memory of a fixed size takes no inputs from another device");
}

TEST_CASE("wrong calls say what is wrong, and the next call is right") {
  WrongUses host;
  VirtualMachine& vm = host.vm();
  const Value x = Floats({1, 2});
  const std::array<Value, 2> both = {x, host.pair()};
  CHECK(MessageOf(vm.TryOutput(0)) == "there is no result yet; invoke first");
  CHECK(MessageOf(vm.TryOutput("y")) == "there is no result yet; invoke first");
  const std::string mian =
      "the executable has no function named \"mian\"; did you mean 'main'? The functions: main, any, there, "
      "back, tree";
  host.Check(vm.TryInvoke("mian"), mian);
  host.Check(vm.TryInvoke(std::uint32_t{9}), "there is no function 9");
  host.Check(vm.TryInvoke("main", {&x, 1}), "function main takes 2 inputs, 1 given");
  const std::array<Value, 2> wrong = {host.pair(), x};
  host.Check(vm.TryInvoke("main", wrong), "function main, input 0 (x): f32[2] expected, an ADT given");
  const std::array<Value, 2> none = {x, Value()};
  host.Check(vm.TryInvoke("main", none),
             "function main, input 1 (pair): (f32[2], integer) expected, nothing given");
  host.Check(host.program().TryRun("main", {&x, 1}), "function main takes 2 inputs, 1 given");
  host.Check(host.program().TryRun("mian", both), mian);
  host.Check(vm.TryOutput(1), "function main has 1 outputs, number 1 asked for");
  host.Check(vm.TryOutput("z"), "function main has no output named \"z\"; the outputs: y");
  Limits limits;
  limits.steps = 2;
  vm.SetLimits(limits);
  const Status stopped = vm.TryInvoke();
  vm.SetLimits({});
  host.Check(stopped,
             "main@12 (%4 = alloc_tensor %3, _, f32[2]): the limit of 2 instructions is used up; raise "
             "Limits::steps if the program needs more");
}

TEST_CASE("outputs over what the VM needs are errors, and the next call is right") {
  WrongUses host;
  VirtualMachine& vm = host.vm();
  const std::string main_y = "function main, output 0 (y): ";
  vm.SetInput("x", TensorView(host.x(), {2}));
  vm.SetInput("pair", host.pair());
  vm.SetOutput("y", TensorView(host.weights(), {2}));
  host.Check(vm.TryInvoke(), main_y + "the bound memory overlaps parameter w");
  CHECK(host.weights()[0] == 10);

  host.Check(vm.TrySetOutput(OutputHandle{1, 1}, TensorView(host.x(), {2})),
             "function any, output 1 (f): only tensors can be bound");
  host.Check(vm.TrySetOutput("y", TensorView(host.x(), DLDataType{9, 99, 1}, std::vector<std::int64_t>{2})),
             main_y + "f32[2] expected, code9_99[2] given");
  host.Check(vm.TrySetOutput(OutputHandle{1, 0},
                             TensorView(host.x(), DLDataType{9, 99, 1}, std::vector<std::int64_t>{2})),
             "function any, output 0 (r): code9_99[2] has a wrong element type, rank or dimension");

  // The mistake shows only when the function returns.
  const std::vector<std::int64_t> shape = {2};
  const std::vector<std::int64_t> strides = {2};
  const Value x = Floats({1, 2});
  vm.SetOutput(OutputHandle{3, 0},
               TensorView(reinterpret_cast<void*>(64), kFloat32, shape, {kDLExtDev, 0}, strides));
  host.Check(vm.TryInvoke("back", {&x, 1}),
             "back@5 (ret %1): strided memory on a device cannot be an output");
  REQUIRE(vm.TryClearOutputs("back").has_value());
  vm.SetOutput(OutputHandle{4, 1}, TensorView(host.x(), {2}));
  host.Check(vm.TryInvoke("tree", {&x, 1}),
             "tree@0 (ret %v): the result has not the structure that the signature of tree says");
  CHECK(host.x()[0] == 1);

  // Its own static memory, and an arena's.
  alignas(128) static unsigned char memory[1 << 16];
  VmOptions options;
  options.memory = {memory, sizeof(memory)};
  VirtualMachine fixed = VirtualMachine::Make(host.program(), options);
  fixed.SetInput("x", TensorView(host.x(), {2}));
  fixed.SetInput("pair", host.pair());
  fixed.SetOutput("y", TensorView(reinterpret_cast<float*>(memory + sizeof(memory) / 2), {2}));
  host.Check(fixed.TryInvoke(), main_y + "the bound memory overlaps the StaticMemory that the VM runs in");
  fixed.ClearOutputs();
  fixed.Invoke();
  CHECK(FloatsOf(fixed.Output(0)) == std::vector<float>{11, 22});

  // An arena's, which a host sees when it is the arena's allocator.
  static void* arena_memory = nullptr;
  const Allocator spy{nullptr,
                      [](void*, std::size_t size, std::size_t alignment) {
                        return arena_memory = DefaultAllocator().allocate(nullptr, size, alignment);
                      },
                      DefaultAllocator().deallocate};
  VmOptions in_arena;
  in_arena.arena = *SharedArena::TryMake(1 << 16, spy);
  VirtualMachine shared = VirtualMachine::Make(host.program(), in_arena);
  shared.SetInput("x", TensorView(host.x(), {2}));
  shared.SetInput("pair", host.pair());
  shared.SetOutput("y", OutputCapacity{static_cast<char*>(arena_memory) + 4096, 8});
  host.Check(shared.TryInvoke(), main_y + "the bound memory overlaps the SharedArena that the VM runs in");
  shared.ClearOutputs();
  shared.Invoke();
  CHECK(FloatsOf(shared.Output(0)) == std::vector<float>{11, 22});
}

TEST_CASE("memory that is not there says so, and the next call is right") {
  WrongUses host;
  TestAllocator allocator;
  allocator.FailAt(1);
  CHECK(MessageOf(SharedArena::TryMake(1024, allocator.allocator())).find(" bytes for a SharedArena") !=
        std::string::npos);
  Limits none;
  none.bytes = 1;
  VirtualMachine vm(host.program(), none);
  const TensorView x(host.x(), {2});
  host.Check(vm.TrySetInput("x", x), "no memory for inputs within the VM's byte limit");
  host.Check(vm.TrySetOutput("y", x), "no memory for outputs within the VM's byte limit");
  vm.SetLimits({});
  vm.SetInput("x", x);
  vm.SetInput("pair", host.pair());
  vm.Invoke();
  CHECK(FloatsOf(vm.Output(0)) == std::vector<float>{11, 22});
}

}  // namespace
}  // namespace rewire::test
