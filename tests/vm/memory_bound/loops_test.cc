// SPDX-License-Identifier: Apache-2.0
// No turn of a loop takes memory from the allocator for the objects that registers hold (LoopBlocks), and the
// bound counts the blocks that are at hand for them.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/support/test_allocator.h"
#include "rewire/tests/vm/memory_bound/bounded_program.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// The allocator's requests when a kernel was called.
struct Turns {
  TestAllocator allocator;
  std::vector<std::int64_t> calls;
};

int Mark(void* turns, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
  static_cast<Turns*>(turns)->calls.push_back(static_cast<Turns*>(turns)->allocator.calls());
  return 0;
}

// host.next(a, ..., out): out = a + 1, elements of i64.
int Next(void* turns, const RewireFFIAny* args, std::int32_t count, RewireFFIAny*) {
  Mark(turns, nullptr, 0, nullptr);
  const DLTensor* in = RewireTensorOf(&args[0]);
  const DLTensor* out = RewireTensorOf(&args[count - 1]);
  std::int64_t elements = 1;
  for (std::int32_t i = 0; i < out->ndim; ++i) elements *= out->shape[i];
  for (std::int64_t i = 0; i < elements; ++i)
    static_cast<std::int64_t*>(out->data)[i] = static_cast<const std::int64_t*>(in->data)[i] + 1;
  return 0;
}

Program ProgramOfTurns(const std::string& text, Turns* turns, StorageFill fill = StorageFill::kUndefined) {
  LinkOptions options;
  options.allocator = turns->allocator.allocator();
  options.storage_fill = fill;
  for (const auto& [name, call] : {std::pair("host.mark", &Mark), std::pair("host.next", &Next)}) {
    PackedFunction kernel = Packed(call, turns);
    kernel.workspace = [](void*, const DLTensor* const*, std::int32_t, std::uint64_t*) { return 0; };
    options.kernels.AddFunction(name, kernel);
  }
  return ProgramOf(".kernel mark = \"host.mark\"\n.kernel next = \"host.next\"\n" + text, options);
}

// Counts from x up to n. The call of mark stands before the loop, in a place that needs less.
struct Loop {
  const char* name;
  const char* text;
};
const Loop kLoops[] = {
    {"a scalar that is carried", R"(
    .func main(x: i64[], n: i64[]) -> value
      invoke_packed mark(%x), outputs=0
      %i = move %x
    loop:
      %s = alloc_storage _, alignment=64, i64, cpu
      %j = alloc_tensor %s, _, i64
      kill %s
      invoke_packed next(%i, %j), outputs=1
      %i = move %j
      kill %j
      if %i == %n goto done else loop
    done:
      ret %i
    .end)"},
    {"integers that kernels get as tensors, views and shapes", R"(
    .const flat: i64[0] = {}
    .const one: i64[1] = {1}
    .func main(x: i64[], n: i64[]) -> value
      invoke_packed mark(%x), outputs=0
      %i = move %x
      %three = load_consti 3
    loop:
      %c = load_const one
      %v = reshape_tensor %i, %c
      %shape = shape_of %v
      %s = alloc_storage _, alignment=64, i64[20], cpu
      %t = alloc_tensor %s, _, i64[1]
      kill %s
      invoke_packed next(%v, %three, %shape, %three, %t), outputs=1
      kill %v
      kill %shape
      %f = load_const flat
      %i = reshape_tensor %t, %f
      kill %t
      if %i == %n goto done else loop
    done:
      ret %i
    .end)"},
    {"two arms, each with objects of its own", R"(
    .func main(x: i64[], n: i64[]) -> value
      invoke_packed mark(%x), outputs=0
      %i = move %x
      %two = load_consti 2
    loop:
      %s = alloc_storage _, alignment=64, i64[60], cpu
      %held = alloc_tensor %s, _, i64[60]
      %u = alloc_storage _, alignment=64, i64, cpu
      %j = alloc_tensor %u, _, i64
      kill %u
      if %i == %two goto one else other
    one:
      invoke_packed next(%i, %held, %j), outputs=1
      kill %held
      goto met
    other:
      %w = alloc_storage _, alignment=64, i64[30], cpu
      %k = alloc_tensor %w, _, i64[30]
      %l = alloc_tensor %w, _, i64[2]
      invoke_packed next(%i, %k, %l, %held, %j), outputs=1
      kill %k
      kill %l
      kill %w
    met:
      kill %s
      kill %held
      %i = move %j
      kill %j
      if %i == %n goto done else loop
    done:
      ret %i
    .end)"},
    {"three that move up", R"(
    .func main(x: i64[], n: i64[]) -> value
      invoke_packed mark(%x), outputs=0
      %a = move %x
      %b = move %x
      %c = move %x
    loop:
      %s = alloc_storage _, alignment=64, i64, cpu
      %d = alloc_tensor %s, _, i64
      kill %s
      invoke_packed next(%c, %a, %b, %d), outputs=1
      %a = move %b
      %b = move %c
      %c = move %d
      kill %d
      %pair = alloc_adt tag=0 (%a, %c)
      %e = get_field %pair, index=1
      kill %pair
      if %e == %n goto done else loop
    done:
      ret %c
    .end)"},
    {"a loop in a loop, in a function that is called", R"(
    .func main(x: i64[], n: i64[]) -> value
      %s = alloc_storage _, alignment=64, i64, cpu
      %y = alloc_tensor %s, _, i64
      %r = invoke count(%x, %n)
      ret %r
    .end
    .func count(x: i64[], n: i64[]) -> value
      invoke_packed mark(%x), outputs=0
      %i = move %x
    outer:
      %t = alloc_storage _, alignment=64, i64[4], cpu
      %held = alloc_tensor %t, _, i64[4]
      kill %t
      %two = load_consti 2
      %k = load_consti 0
      %zero = load_consti 0
    inner:
      %s = alloc_storage _, alignment=64, i64, cpu
      %j = alloc_tensor %s, _, i64
      kill %s
      invoke_packed next(%i, %held, %j), outputs=1
      %i = move %j
      kill %j
      %before = move %k
      %k = move %two
      if %before == %zero goto inner else after
    after:
      kill %held
      if %i == %n goto done else outer
    done:
      ret %i
    .end)"},
};

TEST_CASE("no turn of a loop allocates, and the bound is met") {
  const StorageFill fill = GENERATE(StorageFill::kUndefined, StorageFill::kZero);
  for (const Loop& loop : kLoops) {
    CAPTURE(loop.name, fill);
    Turns turns;
    turns.calls.reserve(100);
    const Program program = ProgramOfTurns(loop.text, &turns, fill);
    const MemoryBound bound = BoundOf(program);
    REQUIRE(bound.unbounded == "");  // NOLINT: shows it
    VirtualMachine vm(program);
    const std::int64_t x = 0, n = 10;
    vm.SetInput("x", TensorView(&x, {}));
    vm.SetInput("n", TensorView(&n, {}));
    for (int run = 0; run < 40; ++run) {
      turns.calls.clear();
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      CHECK(*vm.Output(0).data<std::int64_t>() == n);
      REQUIRE(turns.calls.size() == 11);
      CHECK(turns.calls == std::vector<std::int64_t>(11, turns.calls.front()));
      if (run == 0) CHECK(vm.bytes_peak() == bound.bytes);
    }
  }
}

TEST_CASE("a static memory of the bound's size has room for a loop's blocks") {
  for (const Loop& loop : kLoops) {
    CAPTURE(loop.name);
    Turns turns;
    const Program program = ProgramOfTurns(loop.text, &turns);
    const MemoryBound bound = BoundOf(program);
    const std::unique_ptr<void, Freed> memory = Block(bound.static_bytes);
    VmOptions options;
    options.memory = {memory.get(), bound.static_bytes};
    VirtualMachine vm = VirtualMachine::Make(program, options);
    const std::int64_t x = 0, n = 10;
    vm.SetInput("x", TensorView(&x, {}));
    vm.SetInput("n", TensorView(&n, {}));
    for (int run = 0; run < 3; ++run) REQUIRE(MessageOf(vm.TryInvoke()).empty());
    CHECK(vm.bytes_peak() <= bound.bytes);
  }
}

// The blocks are for speed alone. A program runs within the limit that it needs without them.
TEST_CASE("a limit without room for a loop's blocks is kept") {
  for (const Loop& loop : kLoops) {
    CAPTURE(loop.name);
    Turns turns;
    const Program program = ProgramOfTurns(loop.text, &turns);
    const std::int64_t x = 0, n = 10;
    std::uint64_t least = 0;
    for (std::uint64_t bytes = 64; least == 0; bytes += 64) {
      REQUIRE(bytes < 1 << 16);
      Limits limits;
      limits.bytes = bytes;
      VirtualMachine vm(program, limits);
      if (!vm.TrySetInput("x", TensorView(&x, {})) || !vm.TrySetInput("n", TensorView(&n, {}))) continue;
      const Status status = vm.TryInvoke();
      CHECK(vm.bytes_peak() <= bytes);
      if (status) {
        least = bytes;
      } else {
        CHECK(status.code() == StatusCode::kMemoryLimit);
      }
    }
    CHECK(least < BoundOf(program).bytes);
  }
}

// A loop may never be reached, so its large tensors are taken when it is.
TEST_CASE("a loop that is not reached takes no large memory") {
  Turns turns;
  const Program program = ProgramOfTurns(R"(
    .func main(x: i64[], n: i64[]) -> value
      %i = move %x
    loop:
      if %i == %n goto done else more
    more:
      %s = alloc_storage _, alignment=64, i64[100000], cpu
      %j = alloc_tensor %s, _, i64
      invoke_packed next(%i, %j), outputs=1
      %i = move %j
      goto loop
    done:
      ret %i
    .end)",
                                         &turns);
  VirtualMachine vm(program);
  std::int64_t x = 0;
  const std::int64_t n = 1;
  vm.SetInput("x", TensorView(&x, {}));
  vm.SetInput("n", TensorView(&n, {}));
  x = 1;
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(vm.bytes_peak() < 10000);
  x = 0;
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(vm.bytes_peak() > 800000);
}

}  // namespace
}  // namespace rewire::test
