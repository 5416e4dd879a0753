// SPDX-License-Identifier: Apache-2.0
// A result that nobody has asked for is still the VM's own. It must be the same value whenever somebody asks.
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/support/test_allocator.h"
#include "rewire/tests/vm/run/acting_observer.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

constexpr char kFunctions[] = R"(
  .kernel count = "host.count"
  .func identity(x: f32[2]) -> f32[2]
    ret %x
  .end
  .func counted() -> f32[2]
    %s = alloc_storage _, alignment=64, f32[2], cpu
    %y = alloc_tensor %s, _, f32[2]
    invoke_packed count(%y), outputs=1
    ret %y
  .end
  .func fails() -> f32[2]
    fatal
  .end)";

// Fills in how often it has run.
LinkOptions Counting(const Allocator& allocator) {
  LinkOptions options;
  options.allocator = allocator;
  options.kernels.AddFunction("host.count",
                              MakePackedFunction([n = std::make_shared<int>(0)](kernel::TensorView out) {
                                out.data<float>()[0] = out.data<float>()[1] = static_cast<float>(++*n);
                              }));
  return options;
}

std::vector<float> Both(float value) { return {value, value}; }

TEST_CASE("a returned input is the memory of its run, even if other memory is set before anybody asks") {
  TestAllocator memory;
  std::vector<float> first = {1, 2};
  std::vector<float> second = {3, 4};
  for (const InputMode mode : {InputMode::kBorrow, InputMode::kCopy}) {
    for (const bool asked_before : {false, true}) {
      CAPTURE(static_cast<int>(mode), asked_before);
      VirtualMachine vm(ProgramOf(kFunctions, Counting(memory.allocator())));
      const InputHandle input = *vm.program().FindInput("x", "identity");
      for (int i = 0; i < 2; ++i) {
        REQUIRE(MessageOf(vm.TrySetInput(input, TensorView(first.data(), {2}), mode)).empty());
        REQUIRE(MessageOf(vm.TryInvoke("identity")).empty());
        if (asked_before) CHECK(FloatsOf(vm.result().tensor()) == first);
      }
      REQUIRE(MessageOf(vm.TrySetInput(input, TensorView(second.data(), {2}), mode)).empty());
      CHECK(FloatsOf(vm.result().tensor()) == first);
      REQUIRE(MessageOf(vm.TryInvoke("identity")).empty());
      REQUIRE(MessageOf(vm.TryClearInputs("identity")).empty());
      CHECK(FloatsOf(vm.result().tensor()) == second);
    }
  }
}

TEST_CASE("results that nobody asks for take no more memory, and are given back with the VM") {
  TestAllocator memory;
  {
    VirtualMachine vm(ProgramOf(kFunctions, Counting(memory.allocator())));
    for (int i = 0; i < 2; ++i) REQUIRE(MessageOf(vm.TryInvoke("counted")).empty());
    const std::int64_t calls = memory.calls();
    const std::uint64_t held = vm.bytes_held();
    for (int i = 0; i < 100; ++i) REQUIRE(MessageOf(vm.TryInvoke("counted")).empty());
    CHECK(memory.calls() == calls);
    CHECK(vm.bytes_held() == held);
    CHECK(FloatsOf(vm.result().tensor()) == Both(102));
    REQUIRE(MessageOf(vm.TryInvoke("counted")).empty());
  }
  CHECK(memory.blocks() == 0);
  CHECK(memory.bytes() == 0);
}

TEST_CASE("a result that is asked for late is kept as any other") {
  TestAllocator memory;
  std::optional<VirtualMachine> vm(ProgramOf(kFunctions, Counting(memory.allocator())));
  REQUIRE(MessageOf(vm->TryInvoke("counted")).empty());
  REQUIRE(MessageOf(vm->TryInvoke("counted")).empty());
  const Value asked = vm->result();
  CHECK(vm->TryOutput(0u)->tensor().data<float>() == asked.tensor().data<float>());
  REQUIRE(MessageOf(vm->TryInvoke("counted")).empty());
  Value leaf = *vm->TryOutput(0u);
  vm->DropResult();
  CHECK(vm->result().kind() == ValueKind::kNone);
  REQUIRE(MessageOf(vm->TryInvoke("counted")).empty());
  CHECK(FloatsOf(asked.tensor()) == Both(2));
  vm.reset();
  std::thread([&leaf] {
    CHECK(FloatsOf(leaf.tensor()) == Both(3));
    leaf = Value();
  }).join();
  CHECK(FloatsOf(asked.tensor()) == Both(2));
}

TEST_CASE("a callback that asks during a run gets the result of the run before") {
  TestAllocator memory;
  VirtualMachine vm(ProgramOf(kFunctions, Counting(memory.allocator())));
  const std::vector<float> x = {5, 6};
  REQUIRE(MessageOf(vm.TrySetInput("x", TensorView(x.data(), {2}))).empty());
  // The first run returns an input, which the second run's registers hold as well.
  REQUIRE(MessageOf(vm.TryInvoke("identity")).empty());
  Value seen;
  ActingObserver observer;
  observer.instructions = true;
  observer.action = [&] { seen = vm.result(); };
  REQUIRE(MessageOf(vm.TrySetObserver(&observer)).empty());
  REQUIRE(MessageOf(vm.TryInvoke("identity")).empty());
  CHECK(FloatsOf(seen.tensor()) == x);
  REQUIRE(MessageOf(vm.TryInvoke("counted")).empty());
  CHECK(FloatsOf(seen.tensor()) == x);
  REQUIRE(MessageOf(vm.TrySetObserver(nullptr)).empty());
  CHECK(FloatsOf(vm.result().tensor()) == Both(1));
}

// A program that a kernel gives the tensor back might write it, and so the result before anybody asks.
TEST_CASE("a result that a kernel keeps is read-only, as all results are") {
  Object* kept = nullptr;
  LinkOptions options;
  options.kernels.AddFunction(
      "host.keep", MakePackedFunction([&kept](const RewireFFIAny& out, RewireFFIAny*) -> kernel::Status {
        kept = ObjectOf(out);
        kept->AddStrong();
        return kernel::Status();
      }));
  options.kernels.AddFunction("host.give",
                              MakePackedFunction([&kept](RewireFFIAny* result) -> kernel::Status {
                                *result = MakeAny(kTensorKind, std::exchange(kept, nullptr));
                                return kernel::Status();
                              }));
  VirtualMachine vm(ProgramOf(R"(
    .kernel keep = "host.keep"
    .kernel give = "host.give"
    .func makes() -> f32[2]
      %s = alloc_storage _, alignment=64, f32[2], cpu
      %y = alloc_tensor %s, _, f32[2]
      invoke_packed keep(%y), outputs=1
      ret %y
    .end
    .func writes() -> value
      %y = invoke_packed give(), outputs=0
      invoke_packed keep(%y), outputs=1
      ret %y
    .end)",
                              std::move(options)));
  REQUIRE(MessageOf(vm.TryInvoke("makes")).empty());
  CHECK(MessageOf(vm.TryInvoke("writes")).find("read-only") != std::string::npos);
}

TEST_CASE("a constant that a run in an arena returns is given back with its Program") {
  TestAllocator memory;
  for (const bool asks : {false, true}) {
    LinkOptions options;
    options.allocator = memory.allocator();
    const Program program = ProgramOf(R"(
      .const c: f32[2] = {1, 2}
      .func main() -> value
        %c = load_const c
        ret %c
      .end)",
                                      std::move(options));
    VmOptions of_vm;
    of_vm.arena = *SharedArena::TryMake(1 << 20);
    VirtualMachine vm = *VirtualMachine::TryMake(program, of_vm);
    Object* constant = nullptr;
    std::uint64_t held = 0;
    for (int i = 0; i < 3; ++i) {
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      if (asks) CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{1, 2});
      constant = ObjectOf(vm.result().any());
      if (i == 0) held = constant->combined_ref_count;
      CHECK(constant->combined_ref_count == held);
    }
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("a failed run leaves no result, whether the one before was asked for or not") {
  TestAllocator memory;
  VirtualMachine vm(ProgramOf(kFunctions, Counting(memory.allocator())));
  for (const bool asks : {false, true}) {
    REQUIRE(MessageOf(vm.TryInvoke("counted")).empty());
    if (asks) CHECK(vm.result().kind() == ValueKind::kTensor);
    CHECK(!vm.TryInvoke("fails"));
    CHECK(vm.result().kind() == ValueKind::kNone);
    CHECK(!vm.TryOutput(0u));
  }
}

}  // namespace
}  // namespace rewire::test
