// SPDX-License-Identifier: Apache-2.0
// The kernels on oneDNN as programs use them: weights packed by `__init`, then many runs. Compared with
// rewire.conv and rewire.matmul, which have references of their own.
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "rewire/tests/support/malloc_watch.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {
namespace {

struct ConvCase {
  std::string name;
  std::string x, w, out;  // shapes, as "2, 3, 8, 8"
  std::string channels;
  std::string attributes;
};

Tensor RandomTensor(const std::vector<std::int64_t>& shape, std::uint32_t seed) {
  Tensor tensor = *Tensor::Make(DTypeOf<float>(), Span<const std::int64_t>(shape.data(), shape.size()));
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::int64_t i = 0; i < tensor.view().size(); ++i) {
    state = state * 1664525U + 1013904223U;
    tensor.data<float>()[i] = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return tensor;
}

Program LinkedProgram(const std::string& text, const LinkOptions& options) {
  Result<Program> program = Program::Link(ExecutableOf(text), options);
  if (!program) FAIL(program.error().message());
  return *std::move(program);
}

std::vector<std::int64_t> Dims(const std::string& text) {
  std::vector<std::int64_t> dims;
  std::istringstream stream(text);
  for (std::string dim; std::getline(stream, dim, ',');) dims.push_back(std::stoll(dim));
  return dims;
}

// One program: `plain` is computed by the kernels of kernels/cpu, `packed` by this library.
std::string ConvProgram(const ConvCase& c, bool transposed) {
  const std::string cpu = transposed ? "rewire.conv_transpose" : "rewire.conv";
  const std::string dnn = transposed ? "rewire.onednn.conv_transpose" : "rewire.onednn.conv";
  const std::string pack = transposed ? "rewire.onednn.pack_conv_transpose" : "rewire.onednn.pack_conv";
  const std::string sep = c.attributes.empty() ? "" : ", ";
  return ".param w: f32[" + c.w + "]\n.param b: f32[" + c.channels + "]\n.computed packed: u8[?]\n" +
         ".kernel plain = \"" + cpu + "\" {" + c.attributes + "}\n" + ".kernel pack = \"" + pack +
         "\" {weights=[" + c.w + "]" + sep + c.attributes + "}\n" + ".kernel fast = \"" + dnn +
         "\" {weights=[" + c.w + "]" + sep + c.attributes + "}\n" +
         ".func __init() -> (u8[?])\n  %w = load_const w\n  %p = invoke_packed pack(%w), outputs=0\n"
         "  %r = alloc_adt tag=0(%p)\n  ret %r\n.end\n"
         ".func main(x: f32[" +
         c.x + "]) -> (plain: f32[" + c.out + "], fast: f32[" + c.out +
         "])\n"
         "  %w = load_const w\n  %b = load_const b\n  %p = load_const packed\n"
         "  %s = alloc_storage _, alignment=64, f32[" +
         c.out + "], cpu\n  %y = alloc_tensor %s, _, f32[" + c.out +
         "]\n"
         "  %t = alloc_storage _, alignment=64, f32[" +
         c.out + "], cpu\n  %z = alloc_tensor %t, _, f32[" + c.out +
         "]\n"
         "  invoke_packed plain(%x, %w, %b, %y), outputs=1\n"
         "  invoke_packed fast(%x, %p, %b, %z), outputs=1\n"
         "  %r = alloc_adt tag=0(%y, %z)\n  ret %r\n.end\n";
}

void CheckClose(const Tensor& given, const Tensor& expected) {
  REQUIRE(given.view().size() == expected.view().size());
  double largest = 0;
  double worst = 0;
  for (std::int64_t i = 0; i < given.view().size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(expected.data<float>()[i])));
    worst =
        std::max(worst, std::fabs(static_cast<double>(given.data<float>()[i]) - expected.data<float>()[i]));
  }
  CHECK(worst <= 1e-5 * (1 + largest));
}

// Runs over shapes that have been seen call malloc only within oneDNN.
void CheckAllocatesNothing(VirtualMachine* vm) {
  for (int run = 0; run < 3; ++run) {
    vm->DropResult();
    StartMallocWatch();
    vm->Invoke();
    const std::uint64_t calls = StopMallocWatch();
    if (run == 2) CHECK(calls == 0);
  }
}

void CheckConv(const ConvCase& c, bool transposed) {
  INFO(c.name);
  LinkOptions options;
  options.parameters.emplace_back().Set("w", RandomTensor(Dims(c.w), 1));
  options.parameters.emplace_back().Set("b", RandomTensor(Dims(c.channels), 2));
  options.threads = ThreadPool::Make(2);
  VirtualMachine vm(LinkedProgram(ConvProgram(c, transposed), options));
  for (std::uint32_t run = 0; run < 2; ++run) {
    vm.SetInput("x", RandomTensor(Dims(c.x), 3 + run).view(), InputMode::kCopy);
    vm.Invoke();
    CheckClose(vm.Output("fast"), vm.Output("plain"));
  }
  CheckAllocatesNothing(&vm);
}

TEST_CASE("onednn: convolution gives what rewire.conv gives", "[onednn]") {
  const ConvCase cases[] = {
      {"3x3", "2, 8, 9, 11", "16, 8, 3, 3", "2, 16, 9, 11", "16", "pads=[1, 1, 1, 1]"},
      {"strided, uneven pads", "1, 3, 10, 7", "5, 3, 3, 2", "1, 5, 5, 4", "5",
       "strides=[2, 2], pads=[0, 1, 1, 0]"},
      {"dilated", "1, 4, 12, 12", "6, 4, 3, 3", "1, 6, 8, 8", "6", "dilations=[2, 2]"},
      {"depthwise", "1, 32, 8, 8", "32, 1, 3, 3", "1, 32, 8, 8", "32", "group=32, pads=[1, 1, 1, 1]"},
      {"grouped", "1, 8, 6, 6", "12, 4, 1, 1", "1, 12, 6, 6", "12", "group=2"},
      {"one axis", "2, 5, 20", "7, 5, 4", "2, 7, 17", "7", ""},
      {"three axes", "1, 2, 4, 5, 6", "3, 2, 2, 2, 2", "1, 3, 3, 4, 5", "3", ""},
  };
  for (const ConvCase& c : cases) CheckConv(c, false);
}

// [N, C, H, W] to [N, H, W, C].
Tensor ChannelsLast(const Tensor& image) {
  const Span<const std::int64_t> d = image.shape();
  Tensor moved = *Tensor::Make(DTypeOf<float>(), {d[0], d[2], d[3], d[1]});
  const std::int64_t plane = d[2] * d[3];
  for (std::int64_t i = 0; i < image.view().size(); ++i) {
    const std::int64_t n = i / (plane * d[1]);
    const std::int64_t c = i / plane % d[1];
    moved.data<float>()[(n * plane + i % plane) * d[1] + c] = image.data<float>()[i];
  }
  return moved;
}

TEST_CASE("onednn: images with channels last", "[onednn]") {
  const ConvCase first = {
      "", "2, 8, 9, 11", "16, 8, 3, 3", "2, 16, 5, 6", "16", "pads=[1, 1, 1, 1], strides=[2, 2]"};
  ConvCase last = first;
  last.x = "2, 9, 11, 8";
  last.out = "2, 5, 6, 16";
  last.attributes += ", layout=\"NHWC\"";
  std::string text = ConvProgram(last, false);
  // rewire.conv has one layout: here the fast kernel writes both results.
  const std::size_t plain = text.find("  invoke_packed plain");
  text.replace(plain, text.find('\n', plain) - plain, "  invoke_packed fast(%x, %p, %b, %y), outputs=1");
  const std::size_t import = text.find(".kernel plain");
  text.erase(import, text.find('\n', import) + 1 - import);

  LinkOptions options;
  options.parameters.emplace_back().Set("w", RandomTensor(Dims(first.w), 1));
  options.parameters.emplace_back().Set("b", RandomTensor(Dims(first.channels), 2));
  VirtualMachine expected(LinkedProgram(ConvProgram(first, false), options));
  VirtualMachine given(LinkedProgram(text, options));
  const Tensor image = RandomTensor(Dims(first.x), 3);
  expected.SetInput("x", image.view());
  expected.Invoke();
  const Tensor moved = ChannelsLast(image);
  given.SetInput("x", moved.view());
  given.Invoke();
  CheckClose(given.Output("fast"), ChannelsLast(expected.Output("plain")));
  CheckAllocatesNothing(&given);
}

TEST_CASE("onednn: a matrix product gives what rewire.matmul gives, for every number of rows", "[onednn]") {
  const std::string text =
      ".param w: f32[24, 40]\n.param b: f32[40]\n.computed packed: u8[?]\n"
      ".kernel plain = \"rewire.matmul\"\n.kernel add = \"rewire.add\"\n"
      ".kernel pack = \"rewire.onednn.pack_matmul\" {depth=24, columns=40}\n"
      ".kernel fast = \"rewire.onednn.matmul\" {depth=24, columns=40}\n"
      ".func __init() -> (u8[?])\n  %w = load_const w\n  %p = invoke_packed pack(%w), outputs=0\n"
      "  %r = alloc_adt tag=0(%p)\n  ret %r\n.end\n"
      ".func main(x: f32[N, 24], like: f32[N, 40]) -> (plain: f32[N, 40], fast: f32[N, 40])\n"
      "  %w = load_const w\n  %b = load_const b\n  %p = load_const packed\n  %n = load_consti 65536\n"
      "  %shape = shape_of %like\n"
      "  %s = alloc_storage %n, alignment=64, f32, cpu\n  %y = alloc_tensor_reg %s, _, %shape, f32\n"
      "  %t = alloc_storage %n, alignment=64, f32, cpu\n  %z = alloc_tensor_reg %t, _, %shape, f32\n"
      "  invoke_packed plain(%x, %w, %y), outputs=1\n  invoke_packed add(%y, %b, %y), outputs=1\n"
      "  invoke_packed fast(%x, %p, %b, %z), outputs=1\n"
      "  %r = alloc_adt tag=0(%y, %z)\n  ret %r\n.end\n";
  LinkOptions options;
  options.parameters.emplace_back().Set("w", RandomTensor({24, 40}, 1));
  options.parameters.emplace_back().Set("b", RandomTensor({40}, 2));
  VirtualMachine vm(LinkedProgram(text, options));
  // More shapes than are kept, and each again.
  for (std::int64_t rows = 1; rows <= 40; ++rows) {
    const std::int64_t n = (rows - 1) % 20 + 1;
    vm.SetInput("x", RandomTensor({n, 24}, static_cast<std::uint32_t>(rows)).view(), InputMode::kCopy);
    vm.SetInput("like", RandomTensor({n, 40}, 0).view(), InputMode::kCopy);
    vm.Invoke();
    CheckClose(vm.Output("fast"), vm.Output("plain"));
  }
}

TEST_CASE("onednn: an activation is applied to the result", "[onednn]") {
  const auto run = [](const std::string& attributes) {
    const std::string text =
        ".param w: f32[1, 1]\n.param b: f32[1]\n.computed packed: u8[?]\n"
        ".kernel pack = \"rewire.onednn.pack_matmul\" {depth=1, columns=1}\n"
        ".kernel fast = \"rewire.onednn.matmul\" {depth=1, columns=1, " +
        attributes +
        "}\n"
        ".func __init() -> (u8[?])\n  %w = load_const w\n  %p = invoke_packed pack(%w), outputs=0\n"
        "  %r = alloc_adt tag=0(%p)\n  ret %r\n.end\n"
        ".func main(x: f32[3, 1]) -> y: f32[3, 1]\n"
        "  %b = load_const b\n  %p = load_const packed\n"
        "  %s = alloc_storage _, alignment=64, f32[3, 1], cpu\n  %y = alloc_tensor %s, _, f32[3, 1]\n"
        "  invoke_packed fast(%x, %p, %b, %y), outputs=1\n  ret %y\n.end\n";
    LinkOptions options;
    Tensor two = *Tensor::Make(DTypeOf<float>(), {1, 1});
    two.data<float>()[0] = 2;
    options.parameters.emplace_back().Set("w", two);
    options.parameters.emplace_back().Set("b", Floats({1}));
    VirtualMachine vm(LinkedProgram(text, options));
    const float x[] = {-4, 0.5, 3};  // 2 x + 1: -7, 2, 7
    vm.SetInput("x", TensorView(x, {3, 1}));
    vm.Invoke();
    return FloatsOf(vm.Output(0));
  };
  CHECK(run("activation=\"relu\"") == std::vector<float>{0, 2, 7});
  CHECK(run("activation=\"clip\", alpha=-1.0, beta=6.0") == std::vector<float>{-1, 2, 6});
  CHECK(run("activation=\"leaky_relu\", alpha=0.5") == std::vector<float>{-3.5, 2, 7});
  CHECK(run("activation=\"hard_swish\"")[1] == Approx(2 * 5.0 / 6));
  CHECK(run("activation=\"gelu\"")[1] == Approx(1.9544997).epsilon(1e-4));
  CHECK(run("activation=\"swish\"")[1] == Approx(1.7615942).epsilon(1e-4));
}

TEST_CASE("onednn: bytes that were not packed for it are refused by their number", "[onednn]") {
  const std::string text =
      ".param packed: u8[64]\n.param b: f32[40]\n"
      ".kernel fast = \"rewire.onednn.matmul\" {depth=24, columns=40}\n"
      ".func main(x: f32[2, 24]) -> y: f32[2, 40]\n"
      "  %b = load_const b\n  %p = load_const packed\n"
      "  %s = alloc_storage _, alignment=64, f32[2, 40], cpu\n  %y = alloc_tensor %s, _, f32[2, 40]\n"
      "  invoke_packed fast(%x, %p, %b, %y), outputs=1\n  ret %y\n.end\n";
  LinkOptions options;
  options.parameters.emplace_back().Set("packed", *Tensor::Make(DTypeOf<std::uint8_t>(), {64}));
  options.parameters.emplace_back().Set("b", RandomTensor({40}, 2));
  VirtualMachine vm(LinkedProgram(text, options));
  vm.SetInput("x", RandomTensor({2, 24}, 1).view(), InputMode::kCopy);
  const std::string message = MessageOf(vm.TryInvoke());
  CHECK_THAT(message, Catch::Contains("w is u8[64], expected u8[") &&
                          Catch::Contains("weights packed with the same attributes"));
}

TEST_CASE("onednn: wrong attributes are refused at link", "[onednn]") {
  const auto message = [](const std::string& attributes) {
    const std::string text =
        ".kernel k = \"rewire.onednn.conv\" {" + attributes +
        "}\n.func main(x: f32[1]) -> y: f32[1]\n  invoke_packed k(%x), outputs=0\n  ret %x\n.end\n";
    return MessageOf(Program::Link(ExecutableOf(text)));
  };
  CHECK_THAT(message("group=1"), Catch::Contains("attribute 'weights' is missing"));
  CHECK_THAT(message("weights=[4, 4]"),
             Catch::Contains("attribute 'weights' is [4, 4], expected two channel axes"));
  CHECK_THAT(message("weights=[4, 4, 3], group=3"),
             Catch::Contains("expected a first dimension that is a multiple"));
  CHECK_THAT(message("weights=[65536, 65536, 65536]"), Catch::Contains("2^31 elements at most"));
  CHECK_THAT(message("weights=[4, 4, 3], sizes=[1, 2]"),
             Catch::Contains("attribute 'sizes' must have 1 ints"));
  CHECK_THAT(message("weights=[4, 4, 3], strides=[0]"), Catch::Contains("attribute 'strides' is [0]"));
}

}  // namespace
}  // namespace rewire::test
