// SPDX-License-Identifier: Apache-2.0
// Bindings beside those of the table: for one call, for a thousand, and the host's mistakes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "rewire/tests/vm/outputs/output_harness.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

constexpr char kInc[] = R"(
.func main(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end
)";

// Four floats that count up, in memory that says when it is let go.
struct OwnedMemory {
  explicit OwnedMemory(bool* released) {
    auto owner = std::shared_ptr<float>(new float[4 + 16], [released](const float* memory) {
      *released = true;
      delete[] memory;
    });
    auto address = reinterpret_cast<std::uintptr_t>(owner.get());
    data = owner.get() + (64 - address % 64) % 64 / sizeof(float);
    for (int i = 0; i < 4; ++i) data[i] = static_cast<float>(1 + i);
    tensor = *Tensor::Wrap(TensorView(data, {4}), std::move(owner));
  }
  float* data;
  Tensor tensor;
};

TEST_CASE("memory of an output's allocator is its run's until the next run or DropResult") {
  bool released[4] = {};
  std::vector<std::unique_ptr<OwnedMemory>> given;
  const auto allocate = [](void* context, std::uint64_t, std::uint64_t) -> void* {
    auto& all = *static_cast<std::vector<std::unique_ptr<OwnedMemory>>*>(context);
    return all.back()->data;
  };
  VirtualMachine vm(LinkText(std::string(kTestKernels) + kInc, nullptr));
  alignas(64) float x[4] = {1, 2, 3, 4};
  vm.SetInput("x", TensorView(x, {4}));
  vm.SetOutput("y", OutputAllocator{&given, allocate});
  for (int run = 0; run < 3; ++run) {
    given.push_back(std::make_unique<OwnedMemory>(&released[run]));
    vm.Invoke();
    CHECK(vm.result().tensor().data<float>() == given[static_cast<std::size_t>(run)]->data);
    CHECK(vm.result().tensor().data<float>()[3] == 5);
    if (run == 0) continue;
    // The memory of the run before is the host's: it goes, and no run may read or write it.
    given[static_cast<std::size_t>(run - 1)]->tensor = {};
    CHECK(released[run - 1]);
  }
  vm.DropResult();
  given.back()->tensor = {};
  CHECK(released[2]);
  given.push_back(std::make_unique<OwnedMemory>(&released[3]));
  vm.Invoke();
  CHECK(given.back()->data[0] == 2);
}

// A VM of kInc with x set, for mistakes: after each, the next run is right.
class Mistakes {
 public:
  Mistakes() : program_(LinkText(std::string(kTestKernels) + kInc, nullptr)), vm_(program_) {
    vm_.SetInput("x", TensorView(x_, {4}));
  }
  VirtualMachine& vm() { return vm_; }
  const Program& program() const { return program_; }
  template <typename T>
  void Check(const T& outcome, const std::string& message) {
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().message() == message);
    alignas(64) float y[4] = {};
    vm_.ClearOutputs();
    vm_.SetOutput("y", TensorView(y, {4}));
    vm_.Invoke();
    CHECK(y[3] == 5);
    CHECK_FALSE(vm_.TryOutputReport("y")->copied);
    vm_.ClearOutputs();
  }

 private:
  float x_[4] = {1, 2, 3, 4};
  Program program_;
  VirtualMachine vm_;
};

TEST_CASE("wrong bindings say what is wrong, and the next run is right") {
  Mistakes mistakes;
  VirtualMachine& vm = mistakes.vm();
  float y[4] = {};
  const float constant[4] = {};
  const std::string main_y = "function main, output 0 (y): ";
  CHECK(vm.TryOutputReport("y").error().message() ==
        "this output has not been bound in a successful run yet");
  CHECK(vm.TryOutputShape("y").error().message() == "this output has not been bound in a successful run yet");
  mistakes.Check(vm.TrySetOutput("y", TensorView(constant, {4})),
                 main_y + "memory that is const cannot be written");
  const Tensor read_only = *Tensor::Wrap(TensorView(constant, {4}), nullptr);
  mistakes.Check(vm.TrySetOutput("y", read_only), main_y + "memory that is const cannot be written");
  const std::vector<std::int64_t> shape = {4};
  const void* bytes = constant;
  mistakes.Check(vm.TrySetOutput("y", TensorView(constant, kFloat32, shape)),
                 main_y + "memory that is const cannot be written");
  mistakes.Check(vm.TrySetOutput("y", TensorView(bytes, kFloat32, shape)),
                 main_y + "memory that is const cannot be written");
  mistakes.Check(vm.TrySetOutput("y", OutputCapacity{}), main_y + "no memory given");
  mistakes.Check(vm.TrySetOutput("y", OutputAllocator{}), main_y + "no allocator given");
  mistakes.Check(vm.TrySetOutput("y", OutputCapacity{y, 16, {kDLCUDA, 1}}),
                 main_y + "memory on cuda:1 given, a device that the executable does not name");
  mistakes.Check(vm.TrySetOutput("z", TensorView(y, {4})),
                 "function main has no output named \"z\"; the outputs: y");
  mistakes.Check(vm.TrySetOutput(1, TensorView(y, {4})), "function main has 1 outputs, number 1 asked for");
  mistakes.Check(vm.TrySetOutput(OutputHandle{7, 0}, TensorView(y, {4})),
                 "the output handle is not one of this Program's");
  mistakes.Check(vm.TryDonate(InputHandle{0, 3}, "y"), "the input handle is not one of this Program's");
}

TEST_CASE("donating memory that is const is refused, and the next run is right") {
  const Program program = LinkText(std::string(kTestKernels) + kInc, nullptr);
  VirtualMachine vm(program);
  const float x[4] = {1, 2, 3, 4};
  const auto refused = [&vm] {
    vm.Donate("x", "y");
    CHECK(vm.TryInvoke().error().message() ==
          "function main, output 0 (y): the donated input x is not a tensor that may be written");
    vm.ClearOutputs();
    vm.Invoke();
    CHECK(vm.Output().data<float>()[3] == 5);
  };
  vm.SetInput("x", TensorView(x, {4}));
  refused();
  vm.SetInput("x", *Tensor::Wrap(TensorView(x, {4}), nullptr));
  refused();
  // Const memory that takes the place of other memory.
  float writable[4] = {};
  vm.SetInput("x", TensorView(writable, {4}));
  vm.SetInput("x", TensorView(x, {4}));
  refused();
  REQUIRE(vm.TrySetInputs("main", {TensorView(writable, {4})}));
  REQUIRE(vm.TrySetInputs("main", {TensorView(x, {4})}));
  refused();
  CHECK(x[0] == 1);
}

TEST_CASE("a call that fails at its outputs lets go of the tensors made for them") {
  const Program program = LinkText(R"(
.func main() -> (n: i64[], m: i64[])
  %n = load_consti 1
  %m = load_consti 2
  %r = alloc_adt tag=0(%n, %m)
  ret %r
.end
)",
                                   nullptr);
  VirtualMachine vm(program);
  std::int64_t n = 0;
  vm.SetOutput("n", TensorView(&n, {}));
  vm.Invoke();
  CHECK(n == 1);
  vm.Trim();
  const std::uint64_t before = vm.bytes_held();
  vm.RequireZeroCopy(true);
  CHECK_FALSE(vm.TryInvoke().has_value());
  vm.Trim();
  CHECK(vm.bytes_held() == before);
}

TEST_CASE("outputs cannot be bound while the VM runs, and that run is right") {
  VirtualMachine* running = nullptr;
  std::vector<std::string> messages;
  LinkOptions options;
  options.kernels.AddFunction("meddle", MakePackedFunction([&](kernel::TensorView out) {
                                float y[4];
                                const OutputBinding binding{"y", TensorView(y, {4})};
                                for (const Status& status : {running->TrySetOutput("y", TensorView(y, {4})),
                                                             running->TryInvoke("main", {}, {&binding, 1}),
                                                             running->TryClearOutputs()}) {
                                  messages.push_back(status ? "ok" : status.error().message());
                                }
                                out.data<float>()[0] = 9;
                              }));
  const Program program = LinkText(R"(
.kernel meddle = "meddle"
.func main() -> y: f32[1]
  %s = alloc_storage _, alignment=64, f32[1], cpu
  %a = alloc_tensor %s, _, f32[1]
  invoke_packed meddle(%a), outputs=1
  ret %a
.end
)",
                                   nullptr, std::move(options));
  VirtualMachine vm(program);
  running = &vm;
  float y = 0;
  vm.SetOutput("y", TensorView(&y, {1}));
  vm.Invoke();
  CHECK(y == 9);
  const std::string busy =
      "this VirtualMachine is running; one thread at a time may use it (make one per thread, they share the "
      "Program)";
  CHECK(messages == std::vector<std::string>(3, busy));
}

TEST_CASE("what is wrong with a binding for one call leaves the lasting ones as they were") {
  const Program program = LinkText(std::string(kTestKernels) + kInc + R"(
.func other(x: f32[4]) -> z: f32[4]
  ret %x
.end
)",
                                   nullptr);
  VirtualMachine vm(program);
  float x[4] = {1, 2, 3, 4};
  alignas(64) float lasting[4] = {};
  double d[4] = {};
  float y[4] = {};
  vm.SetInput("x", TensorView(x, {4}));
  vm.SetOutput("y", TensorView(lasting, {4}));
  const Value input = *Tensor::CopyOf(TensorView(x, {4}));
  const auto message = [&](const OutputBinding& binding) {
    const Status status = vm.TryInvoke("main", {&input, 1}, {&binding, 1});
    std::fill(lasting, lasting + 4, 0.0F);
    vm.Invoke();
    CHECK(lasting[3] == 5);
    return status ? std::string("ok") : status.error().message();
  };
  CHECK(message({"y", TensorView(d, {4})}) == "function main, output 0 (y): f32[4] expected, f64[4] given");
  CHECK(message({"z", TensorView(y, {4})}) == "function main has no output named \"z\"; the outputs: y");
  CHECK(message({OutputHandle{1, 0}, TensorView(y, {4})}) == "an output of another function than main");
  CHECK(message({"y", TensorView(y, {4})}) == "ok");
  CHECK(vm.TryDonate(InputHandle{1, 0}, "y").error().message() ==
        "function main, output 0 (y): the donated input belongs to another function");
  vm.Invoke();
  CHECK(lasting[3] == 5);
  CHECK(y[0] == 2);
}

TEST_CASE("a per-call output leaves nothing behind") {
  const Program program = LinkText(std::string(kTestKernels) + kInc, nullptr);
  VirtualMachine vm(program);
  const float x[4] = {1, 2, 3, 4};
  alignas(64) float y[4] = {};
  const Value input = *Tensor::CopyOf(TensorView(x, {4}));
  const OutputBinding binding{"y", TensorView(y, {4})};
  vm.Invoke("main", {&input, 1}, {&binding, 1});
  CHECK(y[0] == 2);
  CHECK(vm.result().tensor().dl().data == nullptr);
  CHECK(program.TryRun("main", {&input, 1}, {&binding, 1}).has_value());
}

TEST_CASE("the deleter of a per-call output has run when the call returns, on success and on error") {
  LinkOptions options;
  options.kernels.AddFunction(
      "fail_at_3", MakePackedFunction([](kernel::TensorView x, kernel::TensorView out) -> kernel::Status {
        if (x.data<float>()[0] == 3) return kernel::ValueError("told to fail");
        out.data<float>()[0] = x.data<float>()[0] + 1;
        return {};
      }));
  const Program program = LinkText(R"(
.kernel step = "fail_at_3"
.const flat: i64[1] = {4}
.func main(x: f32[4]) -> (y: f32[4], z: f32[4])
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  %flat = load_const flat
  %view = reshape_tensor %a, %flat
  invoke_packed step(%x, %view), outputs=1
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %t, _, f32[4]
  invoke_packed step(%a, %b), outputs=1
  %r = alloc_adt tag=0(%view, %b)
  ret %r
.end
)",
                                   nullptr, std::move(options));
  VirtualMachine vm(program);
  for (const float first :
       {1.0F, 3.0F, 2.0F, 1.0F}) {  // no failure, in the first kernel, in the second, none
    INFO(first);
    bool released[2] = {};
    {
      OwnedMemory y(&released[0]);
      OwnedMemory z(&released[1]);
      const float x[4] = {first};
      const Value input = *Tensor::CopyOf(TensorView(x, {4}));
      std::vector<OutputBinding> outputs;
      outputs.push_back({"y", y.tensor.view(), std::move(y.tensor)});
      outputs.push_back({"z", z.tensor.view(), std::move(z.tensor)});
      const bool done = vm.TryInvoke("main", {&input, 1}, std::move(outputs)).has_value();
      CHECK(done == (first == 1));
    }
    CHECK(released[0]);
    CHECK(released[1]);
  }
}

TEST_CASE("memory that the VM was given goes with the binding and its results") {
  const Program program = LinkText(std::string(kTestKernels) + kInc, nullptr);
  bool released = false;
  Tensor result;
  {
    VirtualMachine vm(program);
    const float x[4] = {1, 2, 3, 4};
    vm.SetInput("x", TensorView(x, {4}));
    vm.SetOutput("y", OwnedMemory(&released).tensor);
    vm.Invoke();
    result = vm.Output();
  }
  CHECK_FALSE(released);
  CHECK(result.data<float>()[3] == 5);
  result = Tensor();
  CHECK(released);
}

TEST_CASE("a result in a donated input's memory outlives the input") {
  const Program program = LinkText(R"(
.kernel inc = "inc" in_place
.func main(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end
)",
                                   nullptr);
  bool released = false;
  {
    VirtualMachine vm(program);
    OwnedMemory memory(&released);
    const float* place = memory.data;
    vm.SetInput("x", memory.tensor);
    memory.tensor = Tensor();
    vm.Donate("x", "y");
    vm.RequireZeroCopy(true);
    for (int step = 0; step < 5; ++step) {
      vm.Invoke();
      // The state of the last step is the next one's input, and takes the place of what it was made from.
      vm.SetInput("x", vm.Output());
    }
    CHECK_FALSE(released);
    CHECK(vm.Output().data<float>() == place);
    CHECK(vm.Output().data<float>()[3] == 9);
  }
  CHECK(released);
}

// A cache of keys and values that grows by a row a step. The kernel appends where the cache is its output
// already, and has to copy it where it is not.
TEST_CASE("a cache is appended to by donation, a thousand steps without a copy") {
  constexpr std::int64_t kSteps = 1000;
  constexpr std::int64_t kWidth = 64;
  int copies = 0;
  LinkOptions options;
  options.kernels.AddFunction(
      "append", MakePackedFunction([&copies](kernel::TensorView cache, kernel::TensorView row,
                                             kernel::TensorView step, kernel::TensorView next) {
        if (cache.data<float>() != next.data<float>()) {
          ++copies;
          std::copy_n(cache.data<float>(), cache.size(), next.data<float>());
        }
        std::copy_n(row.data<float>(), kWidth, next.data<float>() + *step.data<std::int64_t>() * kWidth);
      }));
  const Program program = LinkText(R"(
.kernel append = "append" in_place
.func main(keys: f32[1000, 64], values: f32[1000, 64], row: f32[64], step: i64[]) -> (next_keys: f32[1000, 64], next_values: f32[1000, 64])
  %s = alloc_storage _, alignment=64, f32[1000, 64], cpu
  %k = alloc_tensor %s, _, f32[1000, 64]
  invoke_packed append(%keys, %row, %step, %k), outputs=1
  %s = alloc_storage _, alignment=64, f32[1000, 64], cpu
  %v = alloc_tensor %s, _, f32[1000, 64]
  invoke_packed append(%values, %row, %step, %v), outputs=1
  %r = alloc_adt tag=0(%k, %v)
  ret %r
.end
)",
                                   nullptr, std::move(options));
  VirtualMachine vm(program);
  std::vector<float> keys(kSteps * kWidth);
  std::vector<float> values(kSteps * kWidth);
  std::vector<float> row(kWidth);
  std::int64_t step = 0;
  vm.SetInput("keys", TensorView(keys.data(), {kSteps, kWidth}));
  vm.SetInput("values", TensorView(values.data(), {kSteps, kWidth}));
  vm.SetInput("row", TensorView(row.data(), {kWidth}));
  vm.SetInput("step", TensorView(&step, {}));
  vm.Donate("keys", "next_keys");
  vm.Donate("values", "next_values");
  vm.RequireZeroCopy(true);
  for (step = 0; step < kSteps; ++step) {
    for (std::int64_t i = 0; i < kWidth; ++i) row[i] = static_cast<float>(step * 3 + i);
    vm.Invoke();
  }
  CHECK(copies == 0);
  CHECK(vm.bytes_peak() < 16384);  // a cache takes 256,000
  for (const std::vector<float>* cache : {&keys, &values}) {
    for (std::int64_t i = 0; i < kSteps * kWidth; ++i) {
      const std::int64_t at = i / kWidth;
      REQUIRE((*cache)[i] == static_cast<float>(3 * at + i % kWidth));
    }
  }
  // Without the donation each step copies both.
  vm.RequireZeroCopy(false);
  vm.ClearOutputs();
  step = 0;
  vm.Invoke();
  CHECK(copies == 2);
}

}  // namespace
}  // namespace rewire::test
