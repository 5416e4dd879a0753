// SPDX-License-Identifier: Apache-2.0
// Memory of outputs that overlaps something else: every way of binding beside everything that it may lie
// over. Whatever is not refused gives what an unbound run gives.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/vm/outputs/output_harness.h"

namespace rewire::test {
namespace {

// a = x + 1, b = a + x: wrong where a lies over x.
constexpr char kTwo[] = R"(
.param w: f32[4]
.const k: f32[4] = {10, 20, 30, 40}
.func main(x: f32[4]) -> (a: f32[4], b: f32[4])
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %t, _, f32[4]
  invoke_packed add(%a, %x, %b), outputs=1
  %r = alloc_adt tag=0 (%a, %b)
  ret %r
.end
.func constants() -> (w: f32[4], k: f32[4])
  %w = load_const w
  %k = load_const k
  %r = alloc_adt tag=0 (%w, %k)
  ret %r
.end
.func same(x: f32[2,2]) -> y: f32[2,2]
  ret %x
.end
.func open(x: f32[4]) -> y: f32[?]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %y), outputs=1
  ret %y
.end
)";

using Four = std::array<float, 4>;
const Four kX = {1, 2, 3, 4};
const Four kA = {2, 3, 4, 5};
const Four kB = {3, 5, 7, 9};

// One way to give an output memory for four floats.
struct Way {
  const char* name;
  const char* whose;  // in messages
  std::function<Status(VirtualMachine*, int leaf, float* memory)> bind;
};

const std::vector<Way>& Ways() {
  static const std::vector<Way> kWays = {
      {"tensor", "the bound memory",
       [](VirtualMachine* vm, int leaf, float* memory) {
         return vm->TrySetOutput(leaf, TensorView(memory, {4}));
       }},
      {"owned tensor", "the bound memory",
       [](VirtualMachine* vm, int leaf, float* memory) {
         return vm->TrySetOutput(leaf, *Tensor::Wrap(TensorView(memory, {4}), nullptr));
       }},
      {"capacity", "the bound memory",
       [](VirtualMachine* vm, int leaf, float* memory) {
         return vm->TrySetOutput(leaf, OutputCapacity{memory, 16});
       }},
      {"allocator", "its allocator's memory", [](VirtualMachine* vm, int leaf, float* memory) {
         return vm->TrySetOutput(leaf, OutputAllocator{memory, [](void* context, std::uint64_t,
                                                                  std::uint64_t) { return context; }});
       }}};
  return kWays;
}

struct Host {
  Host() : program(Link()), vm(program) {
    std::copy(kX.begin(), kX.end(), memory);
    vm.SetInput("x", TensorView(memory, {4}));
  }
  Program Link() {
    LinkOptions options;
    ParameterSet parameters;
    parameters.Set("w", *Tensor::Wrap(TensorView(weights, {4}), nullptr));
    options.parameters.push_back(parameters);
    return LinkText(std::string(kTestKernels) + kTwo, nullptr, std::move(options));
  }
  // The run's outputs are right, wherever they were made.
  void CheckRight(const Status& status) {
    REQUIRE(status.has_value());
    for (int i = 0; i < 4; ++i) {
      CHECK(vm.Output(0).data<float>()[i] == kA[static_cast<std::size_t>(i)]);
      CHECK(vm.Output(1).data<float>()[i] == kB[static_cast<std::size_t>(i)]);
    }
  }
  void CheckRefused(const Status& status, const std::string& message) {
    REQUIRE_FALSE(status.has_value());
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.error().message().find(message) != std::string::npos);
    CAPTURE(status.error().message());
    vm.ClearOutputs();
    std::copy(kX.begin(), kX.end(), memory);
    CheckRight(vm.TryInvoke());
  }

  alignas(64) float memory[64] = {};  // x lies at its start
  alignas(64) float weights[4] = {5, 6, 7, 8};
  Program program;
  VirtualMachine vm;
};

TEST_CASE("an output over an input is copied, however it was bound, and the values are right") {
  for (const Way& way : Ways()) {
    for (const int offset : {0, 1, 3}) {
      CAPTURE(way.name, offset);
      Host host;
      REQUIRE(way.bind(&host.vm, 0, host.memory + offset).has_value());
      REQUIRE(host.vm.TryInvoke().has_value());
      const OutputReport report = *host.vm.TryOutputReport(0);
      CHECK(report.copied);
      CHECK(report.reason.find("overlaps an input") != std::string::npos);
      for (int i = 0; i < 4; ++i) {
        CHECK(host.memory[offset + i] == kA[static_cast<std::size_t>(i)]);
        CHECK(host.vm.Output(1).data<float>()[i] == kB[static_cast<std::size_t>(i)]);
      }
      std::copy(kX.begin(), kX.end(), host.memory);
      host.vm.RequireZeroCopy(true);
      CHECK_FALSE(host.vm.TryInvoke().has_value());
    }
  }
}

TEST_CASE("an output over another one is refused, whichever way each was bound") {
  for (const Way& first : Ways()) {
    for (const Way& second : Ways()) {
      for (const int offset : {0, 1, 3}) {
        CAPTURE(first.name, second.name, offset);
        Host host;
        REQUIRE(first.bind(&host.vm, 0, host.memory + 16).has_value());
        REQUIRE(second.bind(&host.vm, 1, host.memory + 16 + offset).has_value());
        const Status status = host.vm.TryInvoke();
        // The one of two that is told depends on whose memory is known first.
        REQUIRE_FALSE(status.has_value());
        CHECK(status.error().message().find(" overlaps that of output ") != std::string::npos);
        host.CheckRefused(status, "overlaps that of output");
      }
      Host host;
      REQUIRE(first.bind(&host.vm, 0, host.memory + 16).has_value());
      REQUIRE(second.bind(&host.vm, 1, host.memory + 32).has_value());
      host.CheckRight(host.vm.TryInvoke());
    }
  }
}

TEST_CASE("an output over a constant, a parameter or the VM's own memory is refused") {
  alignas(128) static unsigned char block[1 << 16];
  for (const Way& way : Ways()) {
    CAPTURE(way.name);
    Host host;
    REQUIRE(way.bind(&host.vm, 0, host.weights).has_value());
    host.CheckRefused(host.vm.TryInvoke(), std::string(way.whose) + " overlaps parameter w");
    CHECK(host.weights[0] == 5);
    host.vm.Invoke("constants");
    auto* constant = const_cast<float*>(host.vm.Output(1).data<float>());
    REQUIRE(way.bind(&host.vm, 1, constant).has_value());
    host.CheckRefused(host.vm.TryInvoke(), std::string(way.whose) + " overlaps constant k");

    VmOptions options;
    options.memory = {block, sizeof(block)};
    VirtualMachine fixed = VirtualMachine::Make(host.program, options);
    fixed.SetInput("x", TensorView(host.memory, {4}));
    REQUIRE(way.bind(&fixed, 0, reinterpret_cast<float*>(block + sizeof(block) / 2)).has_value());
    const Status refused = fixed.TryInvoke();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message().find("overlaps the StaticMemory that the VM runs in") !=
          std::string::npos);
  }
}

TEST_CASE("an allocator that gives the memory of another output is refused by that output's name") {
  Host host;
  host.vm.SetOutput(0, TensorView(host.memory + 16, {4}));
  REQUIRE(Ways().back().bind(&host.vm, 1, host.memory + 18).has_value());
  host.CheckRefused(host.vm.TryInvoke(), ", output 1 (b): its allocator's memory overlaps that of output a");
}

TEST_CASE("memory of no bytes hides no overlap and overlaps nothing") {
  Host host;
  host.vm.SetOutput(0, TensorView(host.memory + 16, {4}));
  host.vm.SetOutput(1, TensorView(host.memory + 18, {4}));
  host.CheckRefused(host.vm.TryInvoke(), "overlaps that of output a");
  // An empty range between two that overlap, and inside of one.
  const Program program = LinkText(std::string(kTestKernels) + R"(
.func main(x: f32[4], n: i64[]) -> (a: f32[4], b: f32[?], c: f32[4])
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  %u = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor_reg %u, _, %n, f32
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %c = alloc_tensor %t, _, f32[4]
  invoke_packed add(%a, %x, %c), outputs=1
  %r = alloc_adt tag=0 (%a, %b, %c)
  ret %r
.end
)",
                                   nullptr);
  const std::int64_t zero = 0;
  alignas(64) float memory[64] = {};
  std::copy(kX.begin(), kX.end(), memory);
  VirtualMachine vm(program);
  vm.SetInput("x", TensorView(memory, {4}));
  vm.SetInput("n", TensorView(&zero, {}));
  for (const int hidden : {16, 17, 18}) {
    CAPTURE(hidden);
    vm.ClearOutputs();
    vm.SetOutput(0, TensorView(memory + 16, {4}));
    vm.SetOutput(1, OutputCapacity{memory + hidden, 0});
    vm.SetOutput(2, TensorView(memory + 18, {4}));
    CHECK_FALSE(vm.TryInvoke().has_value());
    vm.SetOutput(2, TensorView(memory + 32, {4}));
    REQUIRE(vm.TryInvoke().has_value());
    CHECK(memory[16 + 3] == 5);
    CHECK(memory[32 + 3] == 9);
  }
  // Between an output and the input that it lies over.
  vm.ClearOutputs();
  vm.SetOutput(0, TensorView(memory, {4}));
  vm.SetOutput(1, OutputCapacity{memory, 0});
  REQUIRE(vm.TryInvoke().has_value());
  CHECK(vm.TryOutputReport(0)->copied);
  CHECK(vm.Output(2).data<float>()[3] == 9);
}

TEST_CASE("strided memory over an input gets the right values, or an error where nothing may be copied") {
  Host host;
  const std::int64_t shape[] = {2, 2};
  const std::int64_t strides[] = {4, 1};
  const OutputHandle y = *host.program.FindOutput(0u, "same");
  host.vm.SetInput(InputHandle{y.function, 0}, TensorView(host.memory, {2, 2}));
  host.vm.SetOutput(y, TensorView(host.memory, kFloat32, {shape, 2}, kHost, {strides, 2}));
  host.vm.RequireZeroCopy(true);
  const Status refused = host.vm.TryInvoke("same");
  REQUIRE_FALSE(refused.has_value());
  // Both reasons, not the one that was found last.
  CHECK(refused.error().message().find("overlaps an input of the same call; the bound memory is strided") !=
        std::string::npos);
  CHECK(host.memory[4] == 0);
  host.vm.RequireZeroCopy(false);
  host.vm.Invoke("same");
  CHECK(host.memory[4] == 3);
  CHECK(host.memory[5] == 4);
  CHECK(host.vm.TryOutputReport(y)->copied);
}

TEST_CASE("memory that cannot be there is refused when it is bound") {
  Host host;
  const auto refused = [&host](const Status& status, const std::string& message) {
    host.CheckRefused(status, message);
  };
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  refused(host.vm.TrySetOutput(0, OutputCapacity{host.memory, kAll}),
          "a capacity of 18446744073709551615 bytes reaches beyond the address space; give the size of the "
          "memory");
  refused(host.vm.TrySetOutput(0, TensorView(static_cast<float*>(nullptr), {4})), "no memory given");
  refused(host.vm.TrySetOutput(0, TensorView()), "f32[4] expected");
  const OutputHandle y = *host.program.FindOutput(0u, "same");
  const std::int64_t shape[] = {2, 2};
  for (const std::int64_t far : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 61,
                                 std::numeric_limits<std::int64_t>::min(), -(std::int64_t{1} << 61)}) {
    CAPTURE(far);
    const std::int64_t strides[] = {far, 1};
    refused(host.vm.TrySetOutput(y, TensorView(host.memory, kFloat32, {shape, 2}, kHost, {strides, 2})),
            "reaches beyond the address space");
    refused(host.vm.TrySetInput(InputHandle{y.function, 0},
                                TensorView(host.memory, kFloat32, {shape, 2}, kHost, {strides, 2})),
            "reaches beyond the address space");
  }
  for (const std::int64_t close : {0, 1, -1}) {
    CAPTURE(close);
    const std::int64_t strides[] = {close, 1};
    refused(host.vm.TrySetOutput(y, TensorView(host.memory + 16, kFloat32, {shape, 2}, kHost, {strides, 2})),
            "its strides let elements share memory");
  }
  const std::int64_t backwards[] = {-2, 1};
  CHECK(host.vm.TrySetOutput(y, TensorView(host.memory + 16, kFloat32, {shape, 2}, kHost, {backwards, 2}))
            .has_value());
}

TEST_CASE("an allocator's answer beyond the address space fails the run") {
  Host host;
  host.vm.SetOutput(0, OutputAllocator{nullptr, [](void*, std::uint64_t, std::uint64_t) {
                                         return reinterpret_cast<void*>(~std::uintptr_t{0} - 7);
                                       }});
  host.CheckRefused(host.vm.TryInvoke(), "its allocator gave 16 bytes beyond the address space");
}

TEST_CASE("a call into memory that a result of the host's lies in leaves that result as it is") {
  Host host;
  float* memory = host.memory + 16;
  host.vm.SetOutput(0, TensorView(memory, {4}));
  host.vm.Invoke();
  const Tensor held = host.vm.Output(0);
  REQUIRE(held.data<float>() == memory);
  const Program program = LinkText(R"(
.func main(x: f32[4]) -> y: f32[4]
  ret %x
.end
)",
                                   nullptr);
  VirtualMachine other(program);
  const Value input(held);
  const OutputBinding binding{0, TensorView(memory, {4})};
  for (VirtualMachine* vm : {&other, &host.vm}) {
    const bool same_vm = vm == &host.vm;
    const OutputHandle open = *host.program.FindOutput(0u, "open");
    const OutputBinding own{open, TensorView(memory, {4})};
    REQUIRE(
        vm->TryInvoke(same_vm ? "open" : "main", {&input, 1}, {same_vm ? &own : &binding, 1}).has_value());
    CHECK(held.data<float>() == memory);
  }
  CHECK(memory[3] == 6);
  // The elements that the call itself made there are gone from the result.
  alignas(64) float fresh[4];
  const Value x(*Tensor::CopyOf(TensorView(kX.data(), {4})));
  const OutputBinding a{0, TensorView(fresh, {4})};
  REQUIRE(host.vm.TryInvoke("main", {&x, 1}, {&a, 1}).has_value());
  CHECK(fresh[3] == 5);
  CHECK(host.vm.Output(0).dl().data == nullptr);
  CHECK(host.vm.Output(1).data<float>()[3] == 9);
}

}  // namespace
}  // namespace rewire::test
