// SPDX-License-Identifier: Apache-2.0
// VMs in a block of memory: a static one without malloc, and several that share an arena.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/memory/fixed_block.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

struct FreeBlock {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<void, FreeBlock>;

Block NewBlock(std::uint64_t bytes) {
  return Block(std::aligned_alloc(FixedBlock::kAlignment, FixedBlock::Rounded(bytes + 2048)));
}

TEST_CASE("a fixed block serves everything that fits by its sum, in any order, and has one hole afterwards") {
  const std::vector<std::uint64_t> sizes = {64, 1280, 128, 4096, 64, 1152, 640, 1024, 2048, 64};
  std::uint64_t sum = FixedBlock::OwnBytes();
  for (const std::uint64_t size : sizes) sum += FixedBlock::Rounded(size);
  const Block memory = NewBlock(sum);
  FixedBlock* block = FixedBlock::Make(memory.get(), sum);
  REQUIRE(block != nullptr);
  const Allocator allocator = block->allocator();
  const auto alignment = [](std::uint64_t size) { return size > 1024 ? 128u : 64u; };
  for (std::size_t shift = 0; shift < sizes.size(); ++shift) {
    std::vector<std::pair<void*, std::uint64_t>> taken;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::uint64_t size = sizes[(i + shift) % sizes.size()];
      void* given = allocator.allocate(allocator.context, size, alignment(size));
      REQUIRE(given != nullptr);
      CHECK(reinterpret_cast<std::uintptr_t>(given) % alignment(size) == 0);
      std::memset(given, 1, size);
      taken.emplace_back(given, size);
    }
    CHECK(allocator.allocate(allocator.context, 64, 64) == nullptr);
    // Given back from both ends to the middle and in another order each time.
    while (!taken.empty()) {
      const std::size_t at = (shift * 7 + taken.size() * 3) % taken.size();
      allocator.deallocate(allocator.context, taken[at].first, taken[at].second, alignment(taken[at].second));
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void* all = allocator.allocate(allocator.context, block->room() / 128 * 128, 128);
    CHECK(all != nullptr);
    allocator.deallocate(allocator.context, all, block->room() / 128 * 128, 128);
  }
}

TEST_CASE("a hole that begins off a boundary serves only what fits behind the boundary") {
  const Block memory = NewBlock(8192);
  FixedBlock* block = FixedBlock::Make(memory.get(), 8192);
  REQUIRE(block != nullptr);
  const Allocator allocator = block->allocator();
  std::vector<char*> units;
  while (void* unit = allocator.allocate(allocator.context, 64, 64))
    units.push_back(static_cast<char*>(unit));
  std::sort(units.begin(), units.end());
  const std::size_t first = reinterpret_cast<std::uintptr_t>(units[0]) % 128 == 64 ? 0 : 1;
  const auto give = [&](std::size_t i) { allocator.deallocate(allocator.context, units[i], 64, 64); };
  for (std::size_t i = first; i < first + 18; ++i) give(i);
  CHECK(allocator.allocate(allocator.context, 18 * 64, 128) == nullptr);
  give(first + 18);
  CHECK(allocator.allocate(allocator.context, 18 * 64, 128) == units[first] + 64);
}

TEST_CASE("a fixed block refuses what does not fit, and memory that is too small") {
  const Block memory = NewBlock(4096);
  CHECK(FixedBlock::Make(nullptr, 4096) == nullptr);
  CHECK(FixedBlock::Make(memory.get(), FixedBlock::OwnBytes() - 1) == nullptr);
  // The bytes before the boundary are lost.
  CHECK(FixedBlock::Make(static_cast<char*>(memory.get()) + 1, FixedBlock::OwnBytes() + 100) == nullptr);
  FixedBlock* block = FixedBlock::Make(memory.get(), 4096);
  REQUIRE(block != nullptr);
  const Allocator allocator = block->allocator();
  CHECK(allocator.allocate(allocator.context, 4096, 128) == nullptr);
  CHECK(allocator.allocate(allocator.context, 64, 256) == nullptr);
  CHECK(allocator.allocate(allocator.context, ~std::size_t{0}, 64) == nullptr);
  CHECK(block->refused());
}

// y = x + x, then + x, in one storage per sum, for n elements.
std::string Doubling(int n) {
  const std::string type = "f32[" + std::to_string(n) + "]";
  const std::string storage = "alloc_storage _, alignment=64, " + type + ", cpu\n";
  return ".kernel add = \"host.add\"\n.func main(x: " + type + ") -> y: " + type + "\n%s = " + storage +
         "%t = alloc_tensor %s, _, " + type + "\ninvoke_packed add(%x, %x, %t), outputs=1\n%u = " + storage +
         "%y = alloc_tensor %u, _, " + type + "\ninvoke_packed add(%t, %x, %y), outputs=1\nret %y\n.end\n";
}

int Add(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const DLTensor* a = RewireTensorOf(&args[0]);
  const DLTensor* b = RewireTensorOf(&args[1]);
  DLTensor* out = RewireTensorOf(&args[2]);
  for (std::int64_t i = 0; i < a->shape[0]; ++i) {
    static_cast<float*>(out->data)[i] =
        static_cast<const float*>(a->data)[i] + static_cast<const float*>(b->data)[i];
  }
  return 0;
}

Program DoublingProgram(int n) {
  LinkOptions options;
  options.kernels.AddFunction("host.add", Packed(Add));
  return ProgramOf(Doubling(n), options);
}

std::vector<float> Threes(int n) { return std::vector<float>(static_cast<std::size_t>(n), 3); }

TEST_CASE("models of several batch sizes share an arena as large as the largest needs") {
  SharedArena arena = *SharedArena::TryMake(3 * 16384 * 4);
  VmOptions options;
  options.arena = arena;
  std::vector<std::vector<float>> inputs;
  std::vector<VirtualMachine> vms;
  for (const int n : {1024, 4096, 16384}) {
    inputs.emplace_back(static_cast<std::size_t>(n), 1.0F);
    vms.push_back(VirtualMachine::Make(DoublingProgram(n), options));
    vms.back().SetInput("x", TensorView(inputs.back().data(), {n}));
  }
  // In any order, and results of earlier runs of all of them stay what they were.
  std::vector<Tensor> held;
  for (const int i : {0, 1, 2, 1, 0, 2, 2, 0}) {
    REQUIRE(MessageOf(vms[static_cast<std::size_t>(i)].TryInvoke()).empty());
    held.push_back(vms[static_cast<std::size_t>(i)].Output(0));
    CHECK_FALSE(arena.in_use());
  }
  for (const Tensor& tensor : held) {
    CHECK(FloatsOf(tensor) == Threes(static_cast<int>(tensor.view().size())));
  }
  // Bound outputs are written in place; nothing is copied out.
  std::vector<float> y(16384);
  vms[2].SetOutput("y", TensorView(y.data(), {16384}));
  REQUIRE(MessageOf(vms[2].TryInvoke()).empty());
  CHECK(y == Threes(16384));
  CHECK(vms[2].Output(0).data<float>() == y.data());
  vms.clear();
  arena = SharedArena();
  CHECK(FloatsOf(held[2]) == Threes(16384));
}

TEST_CASE("an arena that is too small says so, and the VM runs again after") {
  VmOptions options;
  options.arena = *SharedArena::TryMake(8192);
  std::vector<float> large(16384, 1.0F);
  std::vector<float> small(64, 1.0F);
  VirtualMachine big = VirtualMachine::Make(DoublingProgram(16384), options);
  VirtualMachine little = VirtualMachine::Make(DoublingProgram(64), options);
  big.SetInput("x", TensorView(large.data(), {16384}));
  little.SetInput("x", TensorView(small.data(), {64}));
  const Status status = big.TryInvoke();
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kOutOfMemory);
  CHECK_THAT(status.error().message(), Catch::Contains("the SharedArena of 8192 bytes is too small"));
  REQUIRE(MessageOf(little.TryInvoke()).empty());
  CHECK(FloatsOf(little.Output(0)) == Threes(64));
}

// Runs another VM inside a kernel.
struct Nested {
  VirtualMachine* vm = nullptr;
  std::string message;
};

TEST_CASE("a second run in an arena fails while one goes on, and the first is not disturbed") {
  Nested nested;
  LinkOptions link;
  link.kernels.AddFunction(
      "host.add", Packed(
                      [](void* self, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* result) {
                        auto* state = static_cast<Nested*>(self);
                        state->message = MessageOf(state->vm->TryInvoke());
                        return Add(nullptr, args, count, result);
                      },
                      &nested));
  VmOptions options;
  options.arena = *SharedArena::TryMake(1 << 16);
  VirtualMachine outer = VirtualMachine::Make(ProgramOf(Doubling(64), link), options);
  VirtualMachine inner = VirtualMachine::Make(DoublingProgram(64), options);
  nested.vm = &inner;
  std::vector<float> x(64, 1.0F);
  outer.SetInput("x", TensorView(x.data(), {64}));
  inner.SetInput("x", TensorView(x.data(), {64}));
  REQUIRE(MessageOf(outer.TryInvoke()).empty());
  CHECK(nested.message ==
        "the SharedArena is in use by a run of another VirtualMachine; VMs that share one never run at once");
  CHECK(FloatsOf(outer.Output(0)) == Threes(64));
  REQUIRE(MessageOf(inner.TryInvoke()).empty());
  CHECK(FloatsOf(inner.Output(0)) == Threes(64));
}

TEST_CASE("threads over one arena: each run is right or refused") {
  constexpr int kThreads = 4;
  constexpr int kRuns = 2000;
  VmOptions options;
  options.arena = *SharedArena::TryMake(1 << 17);
  std::atomic<int> right{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const int n = 256 << t;
      VirtualMachine vm = VirtualMachine::Make(DoublingProgram(n), options);
      std::vector<float> x(static_cast<std::size_t>(n), 1.0F);
      for (int i = 0; i < kRuns; ++i) {
        const bool set = vm.TrySetInput("x", TensorView(x.data(), {n})).has_value();
        const Status status = vm.TryInvoke();
        if (!status) {
          refused += status.error().code() == StatusCode::kBusy ? 1 : 0;
        } else if (set && FloatsOf(vm.Output(0)) == Threes(n)) {
          ++right;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right + refused == kThreads * kRuns);
  CHECK(right > 0);
}

TEST_CASE("a result of any form outlives its arena's next run") {
  const char* text = R"(
    .const c: f32[2] = {7, 8}
    .func main(x: value) -> value
      %n = load_consti 3
      %c = load_const c
      %shape = shape_of %c
      %copy = device_copy %c, cpu, cpu
      %inner = alloc_adt tag=2 (%copy, %n, %c)
      %r = alloc_adt tag=1 (%inner, %inner, %shape, %x, %copy)
      ret %r
    .end)";
  VmOptions options;
  options.arena = *SharedArena::TryMake(1 << 16);
  VirtualMachine vm = VirtualMachine::Make(ProgramOf(text), options);
  const Value x = ListOf(std::vector<std::int64_t>(1000, 5));
  const Value first = *vm.TryInvoke("main", {&x, 1});
  const Value second = *vm.TryInvoke("main", {&first, 1});
  vm = VirtualMachine(ProgramOf(text));
  options = {};
  for (const Value& value : {first, second, second.field(3)}) {
    REQUIRE(value.tag() == 1);
    REQUIRE(value.field_count() == 5);
    CHECK(FloatsOf(value.field(0).field(0).tensor()) == std::vector<float>{7, 8});
    CHECK(value.field(0).field(1).integer() == 3);
    CHECK(FloatsOf(value.field(1).field(2).tensor()) == std::vector<float>{7, 8});
    CHECK(value.field(2).tensor().data<std::int64_t>()[0] == 2);
    // An object that stands twice is one object still.
    CHECK(value.field(0).any().v_ptr == value.field(1).any().v_ptr);
    CHECK(value.field(4).any().v_ptr == value.field(0).field(0).any().v_ptr);
  }
  CHECK(first.field(3).any().v_ptr == x.any().v_ptr);
}

TEST_CASE("a static memory or an arena, not both; nothing of no size") {
  const Block memory = NewBlock(1 << 16);
  VmOptions options;
  options.memory = {memory.get(), 1 << 16};
  options.arena = *SharedArena::TryMake(64);
  const Program program = DoublingProgram(4);
  CHECK(VirtualMachine::TryMake(program, options).error().message() ==
        "a VM's memory is a StaticMemory or a SharedArena, both were given");
  options.arena = SharedArena();
  options.memory.size = 100;
  CHECK(VirtualMachine::TryMake(program, options).error().code() == StatusCode::kOutOfMemory);
  CHECK(SharedArena::TryMake(0).error().message() == "a SharedArena of 0 bytes asked for");
}

TEST_CASE("a VM in static memory runs, and its results lie there") {
  constexpr std::uint64_t kBytes = 1 << 17;
  const Block memory = NewBlock(kBytes);
  VmOptions options;
  options.memory = {memory.get(), kBytes};
  std::vector<float> x(4096, 1.0F);
  {
    VirtualMachine vm = VirtualMachine::Make(DoublingProgram(4096), options);
    vm.SetInput("x", TensorView(x.data(), {4096}));
    for (int i = 0; i < 5; ++i) {
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      const auto* y = reinterpret_cast<const char*>(vm.Output(0).data<float>());
      CHECK(y >= static_cast<char*>(memory.get()));
      CHECK(y < static_cast<char*>(memory.get()) + kBytes);
      CHECK(FloatsOf(vm.Output(0)) == Threes(4096));
    }
    vm.SetInput("x", TensorView(x.data(), {4096}), InputMode::kCopy);
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    CHECK(FloatsOf(vm.Output(0)) == Threes(4096));
    // A result outlives its VM as long as the memory stays.
    const Tensor kept = vm.Output(0);
    vm = VirtualMachine(DoublingProgram(4));
    CHECK(FloatsOf(kept) == Threes(4096));
  }
}

TEST_CASE("a large result that comes back after Trim is released like any other") {
  VirtualMachine vm(DoublingProgram(4096));
  std::vector<float> x(4096, 1.0F);
  vm.SetInput("x", TensorView(x.data(), {4096}));
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  {
    const Tensor held = vm.Output(0);
    vm.Trim();
    vm.SetInput("x", Value(held));
  }
  vm.SetInput("x", TensorView(x.data(), {4096}));  // the VM's was the last reference
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(FloatsOf(vm.Output(0)) == Threes(4096));
}

}  // namespace
}  // namespace rewire::test
