// SPDX-License-Identifier: Apache-2.0
// What must be made in place: proven by the address that the producing kernel sees.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/vm/outputs/output_harness.h"

namespace rewire::test {
namespace {

// Runs the entry, whose inputs are x: f32[4] (all ones) and c: i64[], unbound and with its last output bound
// to f32 memory: the same values, written there by a kernel exactly once.
void CheckRewired(const std::string& text, std::int64_t flag, float expected,
                  std::vector<std::int64_t> shape = {4}) {
  KernelLog log;
  const Program program = LinkText(kTestKernels + text, &log);
  const Function& main = program.executable().module().functions[0];
  const OutputHandle output = {0, static_cast<std::uint32_t>(main.output_names.size() - 1)};
  INFO(text << program.ExplainOutput(output));
  VirtualMachine vm(program);
  const float x[4] = {1, 1, 1, 1};
  vm.SetInput("x", TensorView(x, {4}));
  vm.SetInput("c", TensorView(&flag, {}));
  vm.Invoke();
  const Tensor unbound = vm.Output(output.leaf);
  CHECK(
      std::all_of(unbound.data<float>(), unbound.data<float>() + 4, [&](float v) { return v == expected; }));
  log.written.clear();
  alignas(64) float y[4] = {};
  vm.SetOutput(output, TensorView(y, kFloat32, shape));
  vm.Invoke();
  CHECK(std::all_of(y, y + 4, [&](float v) { return v == expected; }));
  CHECK(std::count(log.written.begin(), log.written.end(), y) == 1);
  CHECK_FALSE(vm.TryOutputReport(output)->copied);
  CHECK(program.ExplainOutput(output).substr(0, 7) == "rewired");
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

constexpr char kMake[] = R"(
.func make(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end
)";

TEST_CASE("a callee's tensor is rewired through Invoke, from two call sites") {
  const std::string text = std::string(R"(
.func main(x: f32[4], c: i64[]) -> y: f32[4]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %r = invoke make(%x)
  goto done
no:
  %t = invoke make(%x)
  %r = invoke make(%t)
done:
  ret %r
.end
)") + kMake;
  CheckRewired(text, 1, 2);
  CheckRewired(text, 0, 3);
}

TEST_CASE("a leaf of a nested tuple is rewired, through GetField and AllocADT") {
  CheckRewired(std::string(R"(
.func main(x: f32[4], c: i64[]) -> (a: f32[4], (b: f32[4], y: f32[4]))
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %p = alloc_tensor %s, _, f32[4]
  invoke_packed fill_2(%p), outputs=1
  %q = invoke make(%p)
  %inner = alloc_adt tag=0(%x, %q)
  %q2 = get_field %inner, index=1
  %pair = alloc_adt tag=0(%x, %q2)
  %all = alloc_adt tag=0(%x, %pair)
  ret %all
.end
)") + kMake,
               0, 3);
}

TEST_CASE("a chain of reshapes is rewired") {
  CheckRewired(R"(
.const square: i64[2] = {2, 2}
.const row: i64[2] = {1, 4}
.func main(x: f32[4], c: i64[]) -> y: f32[1, 4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  %square = load_const square
  %b = reshape_tensor %a, %square
  invoke_packed inc(%x, %b), outputs=1
  %row = load_const row
  %d = reshape_tensor %b, %row
  ret %d
.end
)",
               0, 2, {1, 4});
}

TEST_CASE("a tensor of a shape known at run time is rewired") {
  CheckRewired(R"(
.func main(x: f32[N], c: i64[]) -> y: f32[N]
  %shape = shape_of %x
  %bytes = load_consti 16
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %a = alloc_tensor_reg %s, _, %shape, f32
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end
)",
               0, 2);
}

TEST_CASE("a loop that is done with its last tensor before the next one is rewired") {
  CheckRewired(R"(
.func main(x: f32[4], c: i64[]) -> y: f32[4]
  %one = load_consti 1
again:
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  if %c == %one goto again else done
done:
  ret %a
.end
)",
               0, 2);
}

TEST_CASE("the storage of a rewired tensor is not taken") {
  KernelLog log;
  const Program program = LinkText(std::string(kTestKernels) + R"(
.func main(x: f32[4]) -> y: f32[1000000]
  %s = alloc_storage _, alignment=64, f32[1000000], cpu
  %a = alloc_tensor %s, _, f32[1000000]
  invoke_packed fill_1(%a), outputs=1
  ret %a
.end
)",
                                   &log);
  std::vector<float> y(1000000);
  const float x[4] = {};
  VirtualMachine vm(program);
  vm.SetInput("x", TensorView(x, {4}));
  vm.SetOutput("y", TensorView(y.data(), {1000000}));
  vm.Invoke();
  CHECK(y.back() == 1);
  CHECK(vm.bytes_peak() < 100000);
}

}  // namespace
}  // namespace rewire::test
