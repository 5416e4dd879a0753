// SPDX-License-Identifier: Apache-2.0
// What must be made in place: proven by the address that the producing kernel sees, and by the bytes that are
// not taken.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/vm/outputs/output_harness.h"

namespace rewire::test {
namespace {

constexpr char kKernels[] = R"(
.kernel fill_1 = "fill_1"
.kernel fill_2 = "fill_2"
.kernel inc = "inc"
.kernel add = "add"
)";

// Runs the entry with output 0 bound to f32[4] memory: every value `expected`, and the memory written by a
// kernel.
void CheckRewired(const std::string& text, std::int64_t flag, float expected) {
  KernelLog log;
  const Program program = LinkText(kKernels + text, &log);
  INFO(program.ExplainOutput({0, 0}));
  VirtualMachine vm(program);
  float x[4] = {1, 1, 1, 1};
  vm.SetInput("x", TensorView(x, {4}));
  vm.SetInput("c", TensorView(&flag, {}));
  vm.Invoke();
  const Tensor unbound = vm.Output(0);
  CHECK(
      std::all_of(unbound.data<float>(), unbound.data<float>() + 4, [&](float v) { return v == expected; }));
  log.written.clear();
  alignas(64) float y[4] = {};
  vm.SetOutput(0, TensorView(y, {4}));
  vm.Invoke();
  CHECK(std::all_of(y, y + 4, [&](float v) { return v == expected; }));
  CHECK(std::count(log.written.begin(), log.written.end(), y) == 1);
  CHECK_FALSE(vm.TryOutputReport(0)->copied);
  CHECK(program.ExplainOutput({0, 0}).substr(0, 7) == "rewired");
}

TEST_CASE("either arm of an If, joined by Move, is rewired") {
  const std::string text = R"(
.func main(x: f32[4], c: i64[]) -> y: f32[4]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed fill_1(%a), outputs=1
  %r = move %a
  goto done
no:
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %t, _, f32[4]
  invoke_packed inc(%x, %b), outputs=1
  %r = move %b
done:
  ret %r
.end
)";
  CheckRewired(text, 1, 1);
  CheckRewired(text, 0, 2);
}

}  // namespace
}  // namespace rewire::test
