// SPDX-License-Identifier: Apache-2.0
// A small network as C source with the kernels of kernels/embedded, beside the VM with the stock kernels.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

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
.param b1: f32[16]
.computed w2: f32[16, 256]
.kernel negate = "rewire.neg"
.kernel conv = "rewire.packed.conv" {channels=16, kernel_shape=[3, 3], pads=[1, 1, 1, 1], activation="relu", post_scale=0.5}
.kernel pool = "rewire.max_pool" {kernel_shape=[2, 2], strides=[2, 2], layout="NHWC"}
.kernel transpose = "rewire.transpose" {perm=[0, 3, 1, 2]}
.kernel matmul = "rewire.packed.matmul" {columns=10}
.kernel add = "rewire.add"
.kernel softmax = "rewire.softmax" {axis=1}
.func __init() -> (f32[16, 256])
  %w = load_const negative
  %s = alloc_storage _, alignment=64, f32[16, 256], cpu
  %w2 = alloc_tensor %s, _, f32[16, 256]
  invoke_packed negate(%w, %w2), outputs=1
  %all = alloc_adt tag=0 (%w2)
  ret %all
.end
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

// The network in the three forms that its weights can have.
constexpr CWeights kForms[] = {CWeights::kInline, CWeights::kSection, CWeights::kPointer};

std::string PrefixOf(CWeights form) { return "net" + std::to_string(static_cast<int>(form)); }

Program LinkedNetwork() {
  const std::string text =
      Weights("w1", 16, 9) + Weights("negative", 16, 256) + Weights("b2", 0, 10) + kNetwork;
  Result<Module> module = Assemble(text);
  if (!module) FAIL(module.error().message());
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  REQUIRE(executable);
  float bias[16];
  for (int i = 0; i < 16; ++i) bias[i] = 0.0625F * static_cast<float>(i % 5 - 2);
  LinkOptions link;
  link.parameters.push_back(ParameterSet());
  link.parameters[0].Set("b1", *Tensor::CopyOf(TensorView(bias, {16})));
  const Result<Program> program = Program::Link(*executable, link);
  if (!program) FAIL(program.error().message());
  return *program;
}

CSource EmitNetwork(const Program& program, CWeights form) {
  EmitCOptions options;
  options.prefix = PrefixOf(form);
  options.weights = form;
  options.constants = ParameterSet::Of(program);
  Result<CSource> source = EmitC(program.executable(), options, options.prefix + ".h");
  if (!source) FAIL(source.error().message());
  return *std::move(source);
}

TEST_CASE("a network in plain C gives what the stock kernels give, and needs no library") {
  const Program program = LinkedNetwork();
  CLibrary library;
  std::vector<std::byte> weights;
  for (const CWeights form : kForms) {
    const CSource source = EmitNetwork(program, form);
    CHECK(source.arena_bytes == 4096);  // the pool is written in place of the convolution
    CHECK(source.constant_bytes == 4 * (16 * 9 + 16 + 16 * 256 + 10));
    CHECK(source.weights.empty() == (form != CWeights::kPointer));
    weights = source.weights;
    library.Add(PrefixOf(form), source);
  }
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  library.Compile({}, "'" + folder + "'/*.c '" + folder + "'/*/*.c");
  for (const std::string& name : library.Defined()) CHECK_THAT(name, Catch::StartsWith("net"));
  for (const std::string& name : library.Undefined()) {
    CHECK((name == "memcpy" || name.rfind("rewire_embedded_", 0) == 0 || name == "_GLOBAL_OFFSET_TABLE_"));
  }
  CHECK_THAT(library.Sections(), Catch::Contains(".net1_weights"));

  // Each constant begins at a multiple of 16 if the weights do.
  std::vector<std::max_align_t> aligned(weights.size() / sizeof(std::max_align_t) + 1);
  std::memcpy(aligned.data(), weights.data(), weights.size());
  VirtualMachine vm(program);
  float image[64];
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 64; ++i) image[i] = 0.125F * static_cast<float>((i * 37 + round * 11) % 29 - 9);
    const Value input(*Tensor::CopyOf(TensorView(image, {1, 8, 8, 1})));
    const Result<Value> expected = vm.TryInvoke("main", {&input, 1});
    REQUIRE(expected);
    std::vector<std::vector<std::byte>> outputs;
    for (const CWeights form : kForms) {
      const CResult given = CallC(*library.Find<RewireAotFunctionInfo>(PrefixOf(form) + "_functions"),
                                  nullptr, {image}, form == CWeights::kPointer ? aligned.data() : nullptr);
      REQUIRE(given.code == 0);
      CHECK(given.is_within);
      outputs.push_back(given.outputs.at(0));
      CHECK(outputs.back() == outputs.front());
    }
    float scores[10];
    std::memcpy(scores, outputs[0].data(), sizeof(scores));
    for (int i = 0; i < 10; ++i)
      CHECK(scores[i] == Approx(expected->tensor().data<float>()[i]).epsilon(1e-5));
  }
}

TEST_CASE("a constant that nobody gives, or gives otherwise, is refused by name") {
  const Program program = LinkedNetwork();
  EmitCOptions options;
  const Result<CSource> bare = EmitC(program.executable(), options, "model.h");
  REQUIRE(!bare);
  CHECK(bare.error().code() == StatusCode::kUnsupported);
  CHECK_THAT(bare.error().message(),
             Catch::Contains("constant b1 is a parameter, so its value is not in the file"));
  const std::int64_t length = 16;
  options.constants.Set("b1", *Tensor::Make(kFloat64, {&length, 1}));
  const Result<CSource> other = EmitC(program.executable(), options, "model.h");
  REQUIRE(!other);
  CHECK_THAT(
      other.error().message(),
      Catch::Contains("constant b1 is f64[16] in EmitCOptions::constants, expected f32[16] on the host"));
}

}  // namespace
}  // namespace rewire::test
