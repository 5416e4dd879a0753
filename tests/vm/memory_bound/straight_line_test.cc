// SPDX-License-Identifier: Apache-2.0
// A straight line of static shapes takes exactly its bound, and a static memory of that size serves without
// malloc.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rewire/tests/support/malloc_watch.h"
#include "rewire/tests/vm/memory_bound/bounded_program.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// Programs over one input x: f32[64, 64], each one straight line of static shapes.
struct Line {
  const char* name;
  const char* body;
  std::uint64_t storage;      // bytes held at once
  std::uint64_t spare = 128;  // missing so many bytes, a static memory of the bound's size is too small
};
const Line kLines[] = {
    {"nothing", "ret %x\n.end", 0},
    {"one", R"(
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %y = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)",
     16384},
    {"three, the first let go", R"(
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %a = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%x, %x, %a), outputs=1
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %b = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%a, %x, %b), outputs=1
      kill %a
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %y = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%b, %x, %y), outputs=1
      ret %y
    .end)",
     32768, 384},
    {"an arena planned ahead", R"(
      %s = alloc_storage _, alignment=64, u8[32768], cpu
      %zero = load_consti 0
      %half = load_consti 16384
      %a = alloc_tensor %s, %zero, f32[64, 64]
      invoke_packed add(%x, %x, %a), outputs=1
      %b = alloc_tensor %s, %half, f32[64, 64]
      invoke_packed add(%a, %x, %b), outputs=1
      %y = alloc_tensor %s, %zero, f32[64, 64]
      invoke_packed add(%b, %x, %y), outputs=1
      ret %y
    .end)",
     32768},
    {"storages first, an over-aligned one, views and trees", R"(
      %s = alloc_storage _, alignment=4096, f32[64, 64], cpu
      %t = alloc_storage _, alignment=64, f32[16], cpu
      %a = alloc_tensor %s, _, f32[64, 64]
      %small = alloc_tensor %t, _, f32[16]
      invoke_packed add(%small, %small, %small), outputs=1
      kill %s
      invoke_packed add(%x, %x, %a), outputs=1
      %flat = load_const flat
      %v = reshape_tensor %a, %flat
      %pair = alloc_adt tag=0 (%v, %small)
      kill %small
      kill %t
      %u = get_field %pair, index=0
      %shape = shape_of %a
      kill %a
      %w = reshape_tensor %u, %shape
      %y = device_copy %w, cpu, cpu
      ret %y
    .end)",
     16384 * 2 + 64 + 16},
    {"small ones at twice the alignment of a block", R"(
      %s = alloc_storage _, alignment=128, f32[16], cpu
      %a = alloc_tensor %s, _, f32[16]
      %t = alloc_storage _, alignment=128, f32[200], cpu
      %b = alloc_tensor %t, _, f32[200]
      invoke_packed add(%a, %a, %a), outputs=1
      invoke_packed add(%b, %b, %b), outputs=1
      %s = alloc_storage _, alignment=128, f32[64, 64], cpu
      %y = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)",
     64 + 800 + 16384},
    {"all storage aligned as the strictest kernel needs", R"(
      %s = alloc_storage _, alignment=64, f32[16], cpu
      %a = alloc_tensor %s, _, f32[16]
      invoke_packed add(%a, %a, %a), outputs=1
      %shape = shape_of %a
      %t = alloc_storage _, alignment=64, f32[64, 64], cpu
      %y = alloc_tensor %t, _, f32[64, 64]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end
    .kernel strict = "host.add" align=256)",
     64 + 8 + 16384},
};

std::string Text(const Line& line) {
  return std::string(
             ".const flat: i64[1] = {4096}\n.kernel add = \"host.add\"\n"
             ".func main(x: f32[64, 64]) -> y: f32[64, 64]\n") +
         line.body;
}

// A program with its bound and memory for x and y.
struct Prepared {
  Prepared(const Line& line, bool bind)
      : outputs_bound(bind), program(ProgramOf(Text(line), Kernels())), bound(BoundOf(program, bind)) {}
  // x, and y where it is bound.
  Status Bind(VirtualMachine* vm) const {
    Status set = vm->TrySetInput("x", in);
    return set && outputs_bound ? vm->TrySetOutput("y", out) : set;
  }

  bool outputs_bound;
  Program program;
  MemoryBound bound;
  std::vector<float> x = std::vector<float>(4096, 1.0F);
  // Aligned as the strictest kernel of these programs needs.
  std::unique_ptr<void, Freed> y{std::aligned_alloc(256, 4096 * sizeof(float))};
  TensorView in = TensorView(x.data(), {64, 64});
  TensorView out = TensorView(static_cast<float*>(y.get()), {64, 64});
};

// Every line, with y unbound and bound.
template <typename Check>
void ForEachLine(const Check& check) {
  for (const Line& line : kLines) {
    for (const bool outputs_bound : {false, true}) {
      CAPTURE(line.name, outputs_bound);
      check(line, Prepared(line, outputs_bound));
    }
  }
}

TEST_CASE("a straight line of static shapes takes exactly its bound") {
  ForEachLine([](const Line& line, const Prepared& prepared) {
    REQUIRE(prepared.bound.unbounded.empty());
    CHECK(prepared.bound.undeclared_workspace.empty());
    if (!prepared.outputs_bound) CHECK(prepared.bound.storage == line.storage);
    VirtualMachine vm(prepared.program);
    REQUIRE(MessageOf(prepared.Bind(&vm)).empty());
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    CHECK(vm.bytes_peak() == prepared.bound.bytes);
  });
}

TEST_CASE("a static memory of the bound's size serves without malloc; less says how much is needed") {
  ForEachLine([](const Line& line, const Prepared& prepared) {
    const std::unique_ptr<void, Freed> memory = Block(prepared.bound.static_bytes);
    VmOptions options;
    options.memory = {memory.get(), prepared.bound.static_bytes};
    StartMallocWatch();
    bool ok = true;
    {
      Result<VirtualMachine> vm = VirtualMachine::TryMake(prepared.program, options);
      ok = vm.has_value();
      for (int i = 0; ok && i < 10; ++i) ok = prepared.Bind(&*vm) && vm->TryInvoke().has_value();
      if (ok) ok = vm->result().kind() == ValueKind::kTensor && vm->TryOutput("y").has_value();
    }
    const std::uint64_t calls = StopMallocWatch();
    CHECK(ok);
    CHECK(calls == 0);

    // A little less: bytes that all but the first need. Where a tensor has been let go, its block can serve
    // an array of the run, so that a little more may be missing there.
    if (line.storage == 0) return;
    bool set = true;
    Status status;
    const std::uint64_t enough = options.memory.size;
    while (status && options.memory.size + line.spare > enough) {
      options.memory.size -= 128;
      VirtualMachine vm = VirtualMachine::Make(prepared.program, options);
      const Status bound = prepared.Bind(&vm);
      set = static_cast<bool>(bound);
      status = set ? vm.TryInvoke() : bound;
    }
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == StatusCode::kOutOfMemory);
    if (set) {
      CHECK_THAT(status.error().message(),
                 Catch::Contains("is too small: Program::TryMemoryBound says how much function main needs"));
    }
  });
}

// Each way of giving a VM inputs and memory for outputs, on a static memory of the bound's size.
TEST_CASE("values as inputs, inputs of a call and outputs of a high rank take no malloc either") {
  // More inputs than lie on the stack of a call, and one that is a tree.
  std::string many = "\n.func many(t: (integer, integer)";
  for (int i = 0; i < 20; ++i) many += ", i" + std::to_string(i) + ": integer";
  const Program program = ProgramOf(R"(
    .kernel add = "host.add"
    .func main(x: f32[2, 1, 2, 1, 1, 1, 2]) -> y: f32[2, 1, 2, 1, 1, 1, 2]
      %s = alloc_storage _, alignment=64, f32[2, 1, 2, 1, 1, 1, 2], cpu
      %y = alloc_tensor %s, _, f32[2, 1, 2, 1, 1, 1, 2]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)" + many + ") -> value\nret %i0\n.end\n",
                                    Kernels());
  const Value leaf(std::int64_t{3});
  std::vector<Value> values(21, leaf);
  values[0] = *Value::Adt(0, std::vector<Value>{leaf, leaf});
  const std::vector<std::int64_t> shape = {2, 1, 2, 1, 1, 1, 2};
  // Every other element: such memory is never written by the kernel itself.
  const std::vector<std::int64_t> strides = {8, 8, 4, 4, 4, 4, 2};
  float numbers[8];
  std::fill_n(numbers, 8, 1.0F);
  alignas(64) float dense[8] = {};
  float spread[16] = {};
  const TensorView outputs[] = {TensorView(dense, kFloat32, shape),
                                TensorView(spread, kFloat32, shape, kHost, strides)};
  const Value x = *Tensor::CopyOf(TensorView(numbers, kFloat32, shape));
  // This VM keeps what all of its ways of running take.
  const std::uint64_t bytes = BoundOf(program, false).static_bytes + BoundOf(program, true).static_bytes +
                              program.TryMemoryBound("many")->static_bytes;
  const std::unique_ptr<void, Freed> memory = Block(bytes);
  VmOptions options;
  options.memory = {memory.get(), bytes};
  enum Step { kMake, kInput, kRun, kCall, kOutput, kClear, kSteps };
  std::uint64_t calls[kSteps] = {};
  Status status;
  const auto watched = [&](Step step, const auto& body) {
    StartMallocWatch();
    if (status) status = body();
    calls[step] += StopMallocWatch();
  };
  std::optional<Result<VirtualMachine>> vm;
  watched(kMake, [&] { return vm.emplace(VirtualMachine::TryMake(program, options)).status(); });
  REQUIRE(MessageOf(status) == "");
  for (int i = 0; i < 3; ++i) {
    watched(kInput, [&] { return (*vm)->TrySetInput("x", x); });
    watched(kRun, [&] { return (*vm)->TryInvoke(); });
    watched(kCall, [&] { return (*vm)->TryInvoke("main", {&x, 1}).status(); });
    watched(kCall, [&] { return (*vm)->TryInvoke("many", values).status(); });
    for (const TensorView& output : outputs) {
      watched(kOutput, [&] { return (*vm)->TrySetOutput("y", output); });
      watched(kRun, [&] { return (*vm)->TryInvoke(); });
    }
    watched(kClear, [&] { return (*vm)->TryClearOutputs(); });
  }
  CHECK(MessageOf(status) == "");
  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(calls[step] == 0);
  }
  CHECK(dense[7] == 2);
  CHECK(spread[14] == 2);
}

TEST_CASE("the watch sees malloc") {
  if (!MallocIsWatched()) return;
  StartMallocWatch();
  const Result<Tensor> tensor = Tensor::Make(kFloat32, {4});
  const std::uint64_t calls = StopMallocWatch();
  CHECK(tensor.has_value());
  CHECK(calls > 0);
}

}  // namespace
}  // namespace rewire::test
