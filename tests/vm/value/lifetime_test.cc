// SPDX-License-Identifier: Apache-2.0
// Who keeps what alive: results, constants, inputs and what kernels hold, beyond the VM and the Program.
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

constexpr char kConstants[] = R"(
  .const c: f32[2] = {1, 2}
  .func main() -> value
    %c = load_const c
    ret %c
  .end
  .func pair() -> value
    %c = load_const c
    %t = alloc_adt tag=4 (%c, %c)
    ret %t
  .end
  .func view() -> value
    %c = load_const c
    %s = shape_of %c
    %v = reshape_tensor %c, %s
    ret %v
  .end
  .func identity(x: value) -> value
    ret %x
  .end
  .func first(x: value) -> value
    %f = get_field %x, index=0
    ret %f
  .end)";

TEST_CASE("constants in results outlive the VM and the Program, alone, in trees and as views") {
  for (const char* function : {"main", "pair", "view"}) {
    CAPTURE(function);
    Value value;
    {
      VirtualMachine vm(ProgramOf(kConstants));
      // Several times: references that are given back too often would take the constant along.
      for (int i = 0; i < 4; ++i) REQUIRE(MessageOf(vm.TryInvoke(function)).empty());
      value = vm.result();
      vm.Trim();
      REQUIRE(MessageOf(vm.TryInvoke(function)).empty());
    }
    const Value tensor = value.kind() == ValueKind::kAdt ? value.field(1) : value;
    value = Value();
    CHECK(FloatsOf(tensor.tensor()) == std::vector<float>{1, 2});
  }
}

TEST_CASE("constants of one Program may be inputs of another and outlive theirs") {
  const Program receiver = ProgramOf(kConstants);
  VirtualMachine vm(receiver);
  for (const char* function : {"main", "pair"}) {
    CAPTURE(function);
    const bool tree = function == std::string("pair");
    {
      VirtualMachine giver(ProgramOf(kConstants));
      REQUIRE(MessageOf(giver.TryInvoke(function)).empty());
      const InputHandle input = *receiver.FindInput(0u, tree ? "first" : "identity");
      REQUIRE(MessageOf(vm.TrySetInput(input, giver.result())).empty());
    }
    REQUIRE(MessageOf(vm.TryInvoke(tree ? "first" : "identity")).empty());
    REQUIRE(MessageOf(vm.TryClearInputs(tree ? "first" : "identity")).empty());
    CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{1, 2});
  }
}

TEST_CASE("a constant that is set as an input twice and cleared is still the Program's") {
  const Program program = ProgramOf(kConstants);
  VirtualMachine vm(program);
  const InputHandle input = *program.FindInput(0u, "identity");
  for (int i = 0; i < 3; ++i) {
    const Value constant = [&] {
      VirtualMachine other(program);
      REQUIRE(MessageOf(other.TryInvoke("main")).empty());
      return other.result();
    }();
    REQUIRE(MessageOf(vm.TrySetInput(input, constant)).empty());
    REQUIRE(MessageOf(vm.TryInvoke("identity")).empty());
    REQUIRE(MessageOf(vm.TryInvoke("identity", {&constant, 1})).empty());
    REQUIRE(MessageOf(vm.TryClearInputs("identity")).empty());
  }
  REQUIRE(MessageOf(vm.TryInvoke("main")).empty());
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{1, 2});
}

TEST_CASE("a returned input is the caller's memory when it was borrowed, and its own when copied or bound") {
  std::vector<float> memory = {1, 2};
  const std::vector<float> refilled = {7, 8};
  const Program program = ProgramOf(R"(
    .func main(x: f32[2]) -> f32[2]
      ret %x
    .end)");
  VirtualMachine vm(program);
  const InputHandle input = *program.FindInput(0u, "main");
  for (const InputMode mode : {InputMode::kBorrow, InputMode::kCopy}) {
    memory = {1, 2};
    REQUIRE(MessageOf(vm.TrySetInput(input, TensorView(memory.data(), {2}), mode)).empty());
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    const Tensor result = vm.result().tensor();
    memory = refilled;
    CHECK(FloatsOf(result) == (mode == InputMode::kBorrow ? refilled : std::vector<float>{1, 2}));
  }
  std::vector<float> bound(2);
  REQUIRE(MessageOf(vm.TrySetInput(input, TensorView(memory.data(), {2}))).empty());
  REQUIRE(MessageOf(vm.TrySetOutput(0, TensorView(bound.data(), {2}))).empty());
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  memory = {1, 2};
  CHECK(bound == refilled);
}

// out[0] counts up each time the function allocates and returns.
constexpr char kFill[] = R"(
  .kernel fill = "host.fill"
  .func main() -> (a: f32[4], b: f32[300])
    %s = alloc_storage _, alignment=64, f32[4], cpu
    %a = alloc_tensor %s, _, f32[4]
    %s2 = alloc_storage _, alignment=64, f32[300], cpu
    %b = alloc_tensor %s2, _, f32[300]
    invoke_packed fill(%a), outputs=1
    invoke_packed fill(%b), outputs=1
    %r = alloc_adt tag=0 (%a, %b)
    ret %r
  .end)";

LinkOptions FillOptions() {
  LinkOptions options;
  auto next = std::make_shared<float>(0.0F);
  options.kernels.AddFunction("host.fill", MakePackedFunction([next](kernel::TensorView out) {
                                for (std::int64_t i = 0; i < out.size(); ++i) out.data<float>()[i] = *next;
                                *next += 1;
                              }));
  return options;
}

TEST_CASE("results outlive VM and Program, are released on another thread, and all memory comes back") {
  TestAllocator memory;
  std::vector<Value> results;
  {
    LinkOptions options = FillOptions();
    options.allocator = memory.allocator();
    VirtualMachine vm(ProgramOf(kFill, std::move(options)));
    for (int i = 0; i < 10; ++i) {
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      if (i % 3 == 0) results.push_back(vm.result());
      if (i % 4 == 0) results.push_back(*vm.TryOutput("b"));
    }
  }
  CHECK(memory.blocks() > 0);
  // Held results were never written again: call i filled a with 2i and b with 2i + 1.
  CHECK(FloatsOf(results[0].field(0).tensor())[3] == 0);
  CHECK(FloatsOf(results[1].tensor())[299] == 1);
  CHECK(FloatsOf(results[2].field(1).tensor())[0] == 7);
  std::thread([&results] { results.clear(); }).join();
  CHECK(memory.blocks() == 0);
  CHECK(memory.bytes() == 0);
}

TEST_CASE("a result that is released while its VM runs on goes without disturbing it") {
  TestAllocator memory;
  {
    LinkOptions options = FillOptions();
    options.allocator = memory.allocator();
    VirtualMachine vm(ProgramOf(kFill, std::move(options)));
    std::vector<std::thread> threads;
    for (int i = 0; i < 50; ++i) {
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      threads.emplace_back([value = vm.result(), i] {
        const float first = FloatsOf(value.field(0).tensor())[0];
        if (first != static_cast<float>(2 * i)) throw std::runtime_error("a held result was overwritten");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(memory.blocks() == 0);
}

// The arguments that a kernel has kept: strong references, as tvm-ffi kernels hold them.
struct Kept {
  std::vector<Object*> objects;
  void Keep(const RewireFFIAny& any) {
    ObjectOf(any)->AddStrong();
    objects.push_back(ObjectOf(any));
  }
  ~Kept() { Drop(); }
  void Drop() {
    for (Object* object : objects) DropStrong(object);
    objects.clear();
  }
};

int KeepLast(void* handle, const RewireFFIAny* args, std::int32_t count, RewireFFIAny*) {
  auto* data = static_cast<float*>(TensorOf(args[count - 1])->tensor.data);
  data[0] = static_cast<float>(static_cast<Kept*>(handle)->objects.size());
  static_cast<Kept*>(handle)->Keep(args[count - 1]);
  return 0;
}

TEST_CASE("a kernel may keep its arguments across calls, and beyond the VM") {
  TestAllocator memory;
  auto kept = std::make_shared<Kept>();
  {
    LinkOptions options;
    options.allocator = memory.allocator();
    PackedFunction keep;
    keep.call = KeepLast;
    keep.handle = kept.get();
    keep.owner = kept;
    options.kernels.AddFunction("host.keep", keep);
    // The second tensor is made on a storage whose first tensor a kernel keeps after the VM has let it go.
    VirtualMachine vm(ProgramOf(R"(
      .kernel keep = "host.keep"
      .func main() -> f32[4]
        %s = alloc_storage _, alignment=64, f32[8], cpu
        %a = alloc_tensor %s, _, f32[4]
        invoke_packed keep(%a), outputs=1
        kill %a
        %half = load_consti 16
        %b = alloc_tensor %s, %half, f32[4]
        kill %s
        invoke_packed keep(%b), outputs=1
        ret %b
      .end)",
                                std::move(options)));
    for (int i = 0; i < 5; ++i) REQUIRE(MessageOf(vm.TryInvoke()).empty());
  }
  REQUIRE(kept->objects.size() == 10);
  for (std::size_t i = 0; i < kept->objects.size(); ++i) {
    const DLTensor& dl = static_cast<TensorObject*>(kept->objects[i])->tensor;
    CHECK(static_cast<const float*>(dl.data)[0] == static_cast<float>(i));
  }
  kept->Drop();
  CHECK(memory.blocks() == 0);
  CHECK(memory.bytes() == 0);
}

TEST_CASE("a kernel may keep a tree with all that is in it") {
  TestAllocator memory;
  auto kept = std::make_shared<Kept>();
  {
    LinkOptions options;
    options.allocator = memory.allocator();
    PackedFunction keep;
    keep.call = [](void* handle, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
      static_cast<Kept*>(handle)->Keep(args[0]);
      return 0;
    };
    keep.handle = kept.get();
    keep.owner = kept;
    options.kernels.AddFunction("host.keep", keep);
    VirtualMachine vm(ProgramOf(R"(
      .const c: f32[2] = {5, 6}
      .kernel keep = "host.keep" objects
      .func main() -> i64[]
        %c = load_const c
        %shape = shape_of %c
        %n = load_consti 3
        %inner = alloc_adt tag=1 (%c, %n)
        %outer = alloc_adt tag=2 (%inner, %shape)
        invoke_packed keep(%outer), outputs=0
        kill %outer
        ret %n
      .end)",
                                std::move(options)));
    for (int i = 0; i < 3; ++i) REQUIRE(MessageOf(vm.TryInvoke()).empty());
  }
  for (Object* object : kept->objects) {
    const auto* outer = static_cast<TupleObject*>(object);
    CHECK(outer->tag == 2);
    const TupleObject* inner = TupleOf(outer->fields()[0]);
    CHECK(static_cast<const float*>(TensorOf(inner->fields()[0])->tensor.data)[1] == 6);
    CHECK(inner->fields()[1].v_int64 == 3);
    CHECK(static_cast<const std::int64_t*>(TensorOf(outer->fields()[1])->tensor.data)[0] == 2);
  }
  kept->Drop();
  CHECK(memory.blocks() == 0);
}

TEST_CASE("storages may leave a function and come back") {
  VirtualMachine vm(ProgramOf(R"(
    .func make() -> storage
      %s = alloc_storage _, alignment=64, f32[4], cpu
      ret %s
    .end
    .func use(s: storage) -> f32[4]
      %a = alloc_tensor %s, _, f32[4]
      %b = alloc_tensor %s, _, f32[4]
      kill %a
      ret %b
    .end)"));
  const std::uint64_t before = vm.bytes_held();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(MessageOf(vm.TryInvoke("make", {})).empty());
    const Value storage = vm.result();
    CHECK(storage.kind() == ValueKind::kStorage);
    for (int j = 0; j < 2; ++j) {
      const Result<Value> tensor = vm.TryInvoke("use", {&storage, 1});
      CHECK(MessageOf(tensor).empty());
    }
  }
  VirtualMachine other(vm.program());
  REQUIRE(MessageOf(other.TryInvoke("make", {})).empty());
  const Value foreign = other.result();
  CHECK(MessageOf(vm.TryInvoke("use", {&foreign, 1})) ==
        "use@0 (%1 = alloc_tensor %s, _, f32[4]): the storage belongs to another VM");
  vm.Trim();
  CHECK(vm.bytes_held() == before);
}

TEST_CASE("closures keep their captured values, and refuse another Program") {
  constexpr char kText[] = R"(
    .const c: f32[2] = {3, 4}
    .func make(x: value) -> closure
      %c = load_const c
      %f = alloc_closure pick(%x, %c)
      ret %f
    .end
    .func pick(a: value, b: value, which: integer) -> value
      %zero = load_consti 0
      if %which == %zero goto first else second
    first:
      ret %a
    second:
      ret %b
    .end
    .func call(f: closure, which: integer) -> value
      %r = invoke_closure %f(%which)
      ret %r
    .end
    .func call_short(f: closure) -> value
      %r = invoke_closure %f()
      ret %r
    .end)";
  VirtualMachine vm(ProgramOf(kText));
  const Value x = Floats({9});
  const Value closure = *vm.TryInvoke("make", {&x, 1});
  CHECK(closure.kind() == ValueKind::kClosure);
  const Value first[] = {closure, Value(0)};
  const Value second[] = {closure, Value(1)};
  CHECK(FloatsOf(vm.TryInvoke("call", {first, 2})->tensor()) == std::vector<float>{9});
  CHECK(FloatsOf(vm.TryInvoke("call", {second, 2})->tensor()) == std::vector<float>{3, 4});
  CHECK(MessageOf(vm.TryInvoke("call_short", {&closure, 1})) ==
        "call_short@0 (%1 = invoke_closure %f()): the closure of pick takes 1 arguments after its 2 captured "
        "values, given 0");
  VirtualMachine other(ProgramOf(kText));
  CHECK(MessageOf(other.TryInvoke("call", {first, 2})) ==
        "call@0 (%2 = invoke_closure %f(%which)): the closure belongs to another Program; only values that "
        "are no closures can be passed between Programs");
}

}  // namespace
}  // namespace rewire::test
