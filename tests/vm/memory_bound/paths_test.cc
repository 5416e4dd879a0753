// SPDX-License-Identifier: Apache-2.0
// Bounds where paths meet, loops turn, functions are called, dimensions are symbolic and kernels take
// workspace; and why there is none.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/vm/memory_bound/bounded_program.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/loader/kernel_api.h"

namespace rewire::test {
namespace {

// Runs where paths meet, loops turn and functions are called: the bound holds, for each way through.
struct Winding {
  const char* name;
  const char* text;
  std::uint64_t storage;
};
const Winding kWinding[] = {
    {"the larger arm counts", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %zero = load_consti 0
      if %n == %zero goto small else large
    small:
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %x, %y), outputs=1
      goto done
    large:
      %s = alloc_storage _, alignment=64, f32[8192], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %x, %y), outputs=1
    done:
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %z = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %y, %z), outputs=1
      ret %z
    .end)",
     32768 + 4096},
    {"a loop holds two turns", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %y = move %x
      %zero = load_consti 0
      %i = load_consti 0
    loop:
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %next = alloc_tensor %s, _, f32[1024]
      kill %s
      invoke_packed add(%x, %y, %next), outputs=1
      %y = move %next
      kill %next
      if %i == %n goto done else again
    again:
      %i = move %n
      goto loop
    done:
      ret %y
    .end)",
     8192},
    {"calls, twice and one in the other", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %a = invoke twice(%x)
      %b = invoke twice(%a)
      %f = alloc_closure twice(%b)
      kill %a
      %c = invoke_closure %f()
      ret %c
    .end
    .func twice(x: f32[1024]) -> value
      %a = invoke double(%x)
      %b = invoke double(%a)
      ret %b
    .end
    .func double(x: f32[1024]) -> value
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)",
     3 * 4096},
    {"boxed integers and flattened trees", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %three = load_consti 3
      %t = alloc_adt tag=0 (%x, %n, %three)
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%t, %n, %three, %x, %y), outputs=1
      ret %y
    .end)",
     4096 + 4 * 8},
};

TEST_CASE("the bound holds on every path") {
  for (const Winding& winding : kWinding) {
    CAPTURE(winding.name);
    const Program program = ProgramOf(winding.text, Kernels());
    const MemoryBound bound = BoundOf(program);
    REQUIRE(bound.unbounded == "");  // NOLINT: shows it
    CHECK(bound.storage == winding.storage);
    const std::unique_ptr<void, Freed> memory = Block(bound.static_bytes);
    std::vector<float> x(1024, 1.0F);
    for (const std::int64_t n : {0, 1, 5}) {
      VmOptions options;
      options.memory = {memory.get(), bound.static_bytes};
      VirtualMachine fixed = VirtualMachine::Make(program, options);
      VirtualMachine vm(program);
      for (VirtualMachine* each : {&fixed, &vm}) {
        each->SetInput("x", TensorView(x.data(), {1024}));
        each->SetInput("n", Value(n));
        REQUIRE(MessageOf(each->TryInvoke()).empty());
        CHECK(each->bytes_peak() <= bound.bytes);
      }
      CHECK(FloatsOf(fixed.Output(0)) == FloatsOf(vm.Output(0)));
    }
  }
}

TEST_CASE("what has no bound says why and where") {
  struct Case {
    const char* text;
    const char* why;
  };
  const Case cases[] = {
      {R"(
    .func main(n: integer) -> value
      %s = alloc_storage %n, alignment=64, u8, cpu
      ret %s
    .end)",
       "main@0 (%1 = alloc_storage %n, alignment=64, u8, cpu): the size of the storage is not known before "
       "the run"},
      {R"(
    .func main(n: integer) -> value
      %r = invoke main(%n)
      ret %r
    .end)",
       "main@0 (%1 = invoke main(%n)): function main calls itself, as deep as its values say"},
      {R"(
    .func main(f: closure) -> value
      %r = invoke_closure %f()
      ret %r
    .end)",
       "main@0 (%1 = invoke_closure %f()): which function the closure calls is not known before the run"},
      {R"(
    .kernel make = "host.add"
    .func main(x: f32[4]) -> value
      %r = invoke_packed make(%x), outputs=0
      ret %r
    .end)",
       "main@0 (%1 = invoke_packed make(%x), outputs=0): what memory the value takes that the kernel returns "
       "is not known"},
      {R"(
    .func main(n: integer) -> value
      %list = alloc_adt tag=0 ()
      %zero = load_consti 0
    loop:
      %list = alloc_adt tag=1 (%n, %list)
      if %n == %zero goto done else loop
    done:
      ret %list
    .end)",
       "grows with every turn of the loop"},
      {R"(
    .func main(x: f32[N]) -> value
      %y = device_copy %x, cpu, cpu
      ret %y
    .end)",
       "the size of the tensor that is copied is not known before the run"},
  };
  for (const Case& one : cases) {
    const MemoryBound bound = BoundOf(ProgramOf(one.text, Kernels()));
    CHECK_FALSE(bound.bounded());
    CHECK_THAT(bound.unbounded, Catch::Contains(one.why));
    CHECK(bound.bytes == 0);
  }
}

TEST_CASE("symbolic dimensions are bounded by the maxima given") {
  const Program program = ProgramOf(R"(
    .func main(x: f32[N, 4]) -> value
      %y = device_copy %x, cpu, cpu
      %shape = shape_of %y
      %r = alloc_adt tag=0 (%y, %shape)
      ret %r
    .end)",
                                    Kernels());
  const MemoryBound bound = BoundOf(program, false, {{"N", 64}});
  REQUIRE(bound.unbounded.empty());
  CHECK(bound.storage == 64 * 4 * 4 + 16);
  for (const std::int64_t n : {64, 63, 17, 1, 0}) {
    std::vector<float> x(256, 1.0F);
    VirtualMachine vm(program);
    vm.SetInput("x", TensorView(x.data(), {n, 4}));
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    CHECK(vm.bytes_peak() <= bound.bytes);
    if (n == 64) CHECK(vm.bytes_peak() == bound.bytes);
  }
  CHECK(program.TryMemoryBound({}, {false, {{"M", 4}}}).error().message() ==
        "no signature has a dimension \"M\"; the dimensions: N");
  CHECK(program.TryMemoryBound({}, {false, {{"N", -4}}}).error().message() ==
        "dimension \"N\" is at most -4, which is negative");
  CHECK(program.TryMemoryBound("none").error().code() == StatusCode::kNotFound);
}

TEST_CASE("of an executable without functions nothing can be asked") {
  const Program program = *Program::Link(*Executable::FromModule(Module()));
  const char* const message = "the executable has no functions";
  CHECK(program.TryMemoryBound().error().message() == message);
  CHECK(program.FindFunction("main").error().message() == message);
}

TEST_CASE("declared workspace counts, undeclared is named") {
  LinkOptions options;
  PackedFunction scratch = Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
    const RewireKernelApi* api = KernelApi();
    const auto bytes = static_cast<std::uint64_t>(RewireTensorOf(args)->shape[0]);
    return api->workspace(bytes) != nullptr && api->workspace(2 * bytes) != nullptr ? 0 : -1;
  });
  const char* text = R"(
    .kernel scratch = "host.scratch"
    .func main(x: f32[5000]) -> value
      invoke_packed scratch(%x), outputs=0
      ret %x
    .end)";
  options.kernels.AddFunction("host.scratch", scratch);
  CHECK(BoundOf(ProgramOf(text, options)).undeclared_workspace == std::vector<std::string>{"host.scratch"});
  scratch.workspace = [](void*, const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks) {
    if (count == 0) return -1;
    blocks[0] = static_cast<std::uint64_t>(tensors[0]->shape[0]);
    blocks[1] = 2 * blocks[0];
    return 2;
  };
  options.kernels.AddFunction("host.scratch", scratch);
  const Program program = ProgramOf(text, options);
  const MemoryBound bound = BoundOf(program);
  CHECK(bound.undeclared_workspace.empty());
  CHECK(bound.workspace == 15000);
  std::vector<float> x(5000);
  VirtualMachine vm(program);
  vm.SetInput("x", TensorView(x.data(), {5000}));
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(vm.bytes_peak() == bound.bytes);
}

}  // namespace
}  // namespace rewire::test
