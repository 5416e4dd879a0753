// SPDX-License-Identifier: Apache-2.0
// What must be copied, why, and that the values are those of an unbound run all the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/vm/outputs/output_harness.h"

namespace rewire::test {
namespace {

struct Case {
  const char* name;
  const char* text;
  const char* verdict;  // of the last output
};

constexpr Case kCases[] = {
    {"an input", R"(
.func main(x: f32[4]) -> y: f32[4]
  ret %x
.end
)",
     "copied: it is an input, or part of one"},
    {"a constant", R"(
.const k: f32[4] = {1, 2, 3, 4}
.func main(x: f32[4]) -> y: f32[4]
  %k = load_const k
  ret %k
.end
)",
     "copied: it is a constant or a parameter"},
    {"a tensor that is two outputs", R"(
.func main(x: f32[4]) -> (y: f32[4], z: f32[4])
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  %r = alloc_adt tag=0(%a, %a)
  ret %r
.end
)",
     "copied: it is part of another output too"},
    {"two buffers that take turns", R"(
.func main(x: f32[4]) -> y: f32[4]
  %i = load_consti 0
  %end = load_consti 0
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
again:
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %t, _, f32[4]
  invoke_packed inc(%a, %b), outputs=1
  %a = move %b
  if %i == %end goto last else again
last:
  %u = alloc_storage _, alignment=64, f32[4], cpu
  %d = alloc_tensor %u, _, f32[4]
  invoke_packed add(%a, %b, %d), outputs=1
  %i = load_consti 1
  %one = load_consti 1
  if %i == %one goto done else again
done:
  ret %a
.end
)",
     "copied: an earlier tensor in the same memory may still be read when it is made"},
    {"a tensor that a closure returns", R"(
.func main(x: f32[4]) -> y: f32[4]
  %f = alloc_closure make()
  %r = invoke_closure %f(%x)
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%r, %a), outputs=1
  %g = alloc_closure keep(%a)
  %y = invoke_closure %g()
  ret %y
.end
.func make(x: f32[4]) -> y: f32[4]
  ret %x
.end
.func keep(x: f32[4]) -> y: f32[4]
  ret %x
.end
)",
     "copied: a kernel or a closure returns it"},
};

TEST_CASE("outputs that are copied say why, and are right") {
  for (const Case& entry : kCases) {
    DYNAMIC_SECTION(entry.name) {
      const Program program = LinkText(std::string(kTestKernels) + entry.text, nullptr);
      const auto leaf =
          static_cast<std::uint32_t>(program.executable().module().functions[0].output_names.size() - 1);
      const OutputHandle output = {0, leaf};
      const std::string explained = program.ExplainOutput(output);
      CHECK(explained.substr(0, explained.find('\n')) == entry.verdict);
      VirtualMachine vm(program);
      const float x[4] = {1, 2, 3, 4};
      vm.SetInput("x", TensorView(x, {4}));
      vm.Invoke();
      const Tensor unbound = vm.Output(leaf);
      alignas(64) float y[4] = {};
      vm.SetOutput(output, TensorView(y, {4}));
      vm.Invoke();
      CHECK(std::equal(y, y + 4, unbound.data<float>()));
    }
  }
}

constexpr char kInc[] = R"(
.func main(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end
)";

TEST_CASE("strided, misaligned and overlapping memory is copied to") {
  const Program program = LinkText(std::string(kTestKernels) + kInc, nullptr);
  VirtualMachine vm(program);
  alignas(64) float x[4] = {1, 2, 3, 4};
  vm.SetInput("x", TensorView(x, {4}));
  SECTION("strided") {
    float y[8] = {};
    const std::vector<std::int64_t> shape = {4};
    const std::vector<std::int64_t> strides = {2};
    vm.SetOutput("y", TensorView(y, kFloat32, shape, kHost, strides));
    vm.Invoke();
    CHECK(y[0] == 2);
    CHECK(y[6] == 5);
    CHECK(y[1] == 0);
    CHECK(vm.TryOutputReport("y")->reason == "the bound memory is strided");
  }
  SECTION("misaligned") {
    alignas(64) char memory[32] = {};
    const std::vector<std::int64_t> shape = {4};
    vm.SetOutput("y", TensorView(memory + 1, kFloat32, shape));
    vm.Invoke();
    float y[4];
    std::memcpy(y, memory + 1, sizeof(y));
    CHECK(y[3] == 5);
    CHECK(vm.TryOutputReport("y")->reason == "the bound memory is not aligned as the kernels need");
  }
  SECTION("over the input") {
    vm.SetOutput("y", TensorView(x, {4}));
    vm.Invoke();
    CHECK(x[0] == 2);
    CHECK(vm.TryOutputReport("y")->reason == "the bound memory overlaps an input of the same call");
  }
}

TEST_CASE("wrong bindings say what is wrong, and the next run is right") {
  const Program program = LinkText(std::string(kTestKernels) + kInc, nullptr);
  VirtualMachine vm(program);
  const float x[4] = {1, 2, 3, 4};
  vm.SetInput("x", TensorView(x, {4}));
  double d[4];
  float y[4] = {};
  CHECK(vm.TrySetOutput("y", TensorView(d, {4})).error().message() ==
        "function main, output 0 (y): f32[4] expected, f64[4] given");
  CHECK(vm.TrySetOutput("y", TensorView(y, {2, 2})).error().message() ==
        "function main, output 0 (y): f32[4] expected, f32[2, 2] given");
  CHECK(vm.TrySetOutput("y", TensorView(x, {4})).error().message() ==
        "function main, output 0 (y): memory that is const cannot be written");
  vm.SetOutput("y", OutputCapacity{y, 8});
  CHECK(vm.TryInvoke().error().message().find("output y: f32[4] takes 16 bytes, the bound memory has 8") !=
        std::string::npos);
  vm.SetOutput("y", OutputCapacity{y, 16});
  vm.Invoke();
  CHECK(y[3] == 5);
  CHECK(vm.OutputShape("y") == std::vector<std::int64_t>{4});
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

TEST_CASE("a cache is appended to by donation, a thousand steps without a copy") {
  KernelLog log;
  const Program program = LinkText(std::string(kTestKernels) + R"(
.kernel keep = "copy" in_place
.kernel bump = "bump"
.func main(cache: f32[1000], step: f32[1]) -> next: f32[1000]
  %s = alloc_storage _, alignment=64, f32[1000], cpu
  %a = alloc_tensor %s, _, f32[1000]
  invoke_packed keep(%cache, %a), outputs=1
  invoke_packed bump(%step, %a), outputs=1
  ret %a
.end
)",
                                   &log);
  VirtualMachine vm(program);
  std::vector<float> cache(1000);
  float step = 0;
  vm.SetInput("cache", TensorView(cache.data(), {1000}));
  vm.SetInput("step", TensorView(&step, {1}));
  vm.Donate("cache", "next");
  vm.RequireZeroCopy(true);
  for (int i = 0; i < 1000; ++i) {
    step = static_cast<float>(i);
    vm.Invoke();
  }
  CHECK(
      std::all_of(log.written.begin(), log.written.end(), [&](const void* p) { return p == cache.data(); }));
  CHECK(cache[0] == 0);
  CHECK(cache[999] == 999);
}

}  // namespace
}  // namespace rewire::test
