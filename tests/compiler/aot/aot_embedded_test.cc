// SPDX-License-Identifier: Apache-2.0
// A small network as C source with the kernels of kernels/embedded, beside the VM with the stock kernels.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// The kernels read packed weights in the same form, whatever it is, so any numbers will do.
std::string Weights(const std::string& name, int rows, int columns) {
  std::string text = ".const " + name + ": f32[" + (rows == 0 ? "" : std::to_string(rows) + ", ") +
                     std::to_string(columns) + "] = {";
  for (int i = 0; i < std::max(rows, 1) * columns; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(0.001 * ((i * 7919 + rows) % 401 - 200));
  }
  return text + "}\n";
}

constexpr char kNetwork[] = R"(
.const shape: i64[2] = {1, 256}
.kernel conv = "rewire.packed.conv" {channels=16, kernel_shape=[3, 3], pads=[1, 1, 1, 1], activation="relu", post_scale=0.5}
.kernel pool = "rewire.max_pool" {kernel_shape=[2, 2], strides=[2, 2], layout="NHWC"}
.kernel transpose = "rewire.transpose" {perm=[0, 3, 1, 2]}
.kernel matmul = "rewire.packed.matmul" {columns=10}
.kernel add = "rewire.add"
.kernel softmax = "rewire.softmax" {axis=1}
.func main(image: f32[1, 8, 8, 1]) -> scores: f32[1, 10]
  %w1 = load_const w1
  %b1 = load_const b1
  %w2 = load_const w2
  %b2 = load_const b2
  %s = alloc_storage _, alignment=64, u8[5120], cpu
  %x = alloc_tensor %s, _, f32[1, 8, 8, 16]
  invoke_packed conv(%image, %w1, %b1, %x), outputs=1
  %at = load_consti 4096
  %p = alloc_tensor %s, %at, f32[1, 4, 4, 16]
  invoke_packed pool(%x, %p), outputs=1
  %t = alloc_tensor %s, _, f32[1, 16, 4, 4]
  invoke_packed transpose(%p, %t), outputs=1
  %shape = load_const shape
  %flat = reshape_tensor %t, %shape
  %s2 = alloc_storage _, alignment=64, f32[1, 10], cpu
  %y = alloc_tensor %s2, _, f32[1, 10]
  invoke_packed matmul(%flat, %w2, %b2, %y), outputs=1
  invoke_packed add(%y, %y, %y), outputs=1
  invoke_packed softmax(%y, %y), outputs=1
  ret %y
.end
)";

TEST_CASE("a network in plain C gives what the stock kernels give, and needs no library") {
  std::string text =
      Weights("w1", 16, 9) + Weights("b1", 0, 16) + Weights("w2", 16, 256) + Weights("b2", 0, 10);
  const std::string network = kNetwork;
  Result<Module> module = Assemble(text + network);
  if (!module) FAIL(module.error().message());
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  REQUIRE(executable);
  EmitCOptions options;
  options.prefix = "net";
  const Result<CSource> source = EmitC(*executable, options, "net.h");
  if (!source) FAIL(source.error().message());
  CHECK(source->arena_bytes == 5120);
  CLibrary library;
  library.Add("net", *source);
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  library.Compile({}, "'" + folder + "'/*.c '" + folder + "'/*/*.c");
  for (const std::string& name : library.Defined()) CHECK_THAT(name, Catch::StartsWith("net_"));
  for (const std::string& name : library.Undefined()) {
    CHECK((name == "memcpy" || name.rfind("rewire_embedded_", 0) == 0 || name == "_GLOBAL_OFFSET_TABLE_"));
  }

  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  VirtualMachine vm(*program);
  float image[64];
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 64; ++i) image[i] = 0.125F * static_cast<float>((i * 37 + round * 11) % 29 - 9);
    const Value input(*Tensor::CopyOf(TensorView(image, {1, 8, 8, 1})));
    const Result<Value> expected = vm.TryInvoke("main", {&input, 1});
    REQUIRE(expected);
    const CResult given = CallC(*library.Find<CFunctionInfo>("net_functions"), nullptr, {image});
    REQUIRE(given.code == 0);
    CHECK(given.is_within);
    float scores[10];
    std::memcpy(scores, given.outputs.at(0).data(), sizeof(scores));
    for (int i = 0; i < 10; ++i)
      CHECK(scores[i] == Approx(expected->tensor().data<float>()[i]).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace rewire::test
