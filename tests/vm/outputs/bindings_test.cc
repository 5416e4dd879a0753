// SPDX-License-Identifier: Apache-2.0
// Bindings beside those of the table: for one call, for a thousand, and the host's mistakes.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/vm/outputs/output_harness.h"

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
