// SPDX-License-Identifier: Apache-2.0
// --precision bf16: products by constant weights in bf16. Expected values are computed by hand.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/compiler/compiler.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/c_api/status.h"
#include "rewire/vm/kernel/amx.h"
#include "rewire/vm/tensor.h"

namespace rewire::test {
namespace {

// y = x w, with 10 rows of w. In bf16 1.27 is 1.2734375, and the others are themselves.
onnx::ModelProto RoundedProduct() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", 10});
  std::vector<float> weights(20, 0);
  weights[0] = 1.27F;
  weights[1] = 127;
  weights[18] = -0.5F;
  weights[19] = 64;
  AddFloats(model.mutable_graph(), "w", {10, 2}, weights);
  AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {"N", 2});
  return model;
}

// y = conv(x, w), of `channels` to `channels`.
onnx::ModelProto ConvOf(std::int64_t channels, std::int64_t size, std::int64_t group = 1,
                        std::int64_t image = 8) {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {1, channels, image, image});
  std::vector<float> weights(static_cast<std::size_t>(channels * (channels / group) * size * size));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 100) / 100;
  AddFloats(model.mutable_graph(), "w", {channels, channels / group, size, size}, weights);
  AddInt(AddNode(model.mutable_graph(), "Conv", {"x", "w"}, "y"), "group", group);
  SetValue(model.mutable_graph()->add_output(), "y", {1, channels, image + 1 - size, image + 1 - size});
  return model;
}

CompileOptions ByBf16(Cpu cpu = Cpu::kVectors) {
  CompileOptions options;
  options.precision = Precision::kBf16;
  options.cpu = cpu;
  return options;
}

CompileOptions OnSamples(std::vector<float> elements) {
  CompileOptions options = ByBf16();
  options.check_passes = true;
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(elements.size()) / 10, 10};
  options.calibration.data = {{{"x", *Tensor::CopyOf(TensorView(elements.data(), kFloat32, shape))}}};
  return options;
}

// The bytes of the file's constants of bf16.
std::uint64_t Bf16Bytes(const Module& module) {
  std::uint64_t bytes = 0;
  for (const auto& constant : module.constants) {
    if (constant.type.dtype == MakeDType(kBFloat, 16)) bytes += constant.stored.view.size();
  }
  return bytes;
}

std::string ReasonOf(const Outcome& made) {
  REQUIRE(made.message.empty());
  REQUIRE(made.compiled.products.size() == 1);
  return made.compiled.products[0].reason;
}

TEST_CASE("a product by constant weights computes in bf16, and the report says what that does") {
  const Outcome made = CompileProto(RoundedProduct(), OnSamples(std::vector<float>(10, 1)));
  REQUIRE(made.message.empty());
  REQUIRE(made.compiled.products.size() == 1);
  CHECK(made.compiled.products[0].node == "MatMul 'y'");
  CHECK(made.compiled.products[0].quantized);
  REQUIRE(made.compiled.movement.size() == 1);
  CHECK(made.compiled.movement[0].max_abs == Approx(0.0034375).epsilon(1e-4));
  CHECK(made.compiled.unmeasured.empty());
  // One panel of 16 columns and five pairs.
  CHECK(Bf16Bytes(made.compiled.module) == 16 * 10 * 2);
  const Answer answer = RunOnCounts(made.compiled.module, {2, 10});
  REQUIRE(answer.error.empty());
  CHECK(answer.values == std::vector<float>{-4.5F, 576, 10 * 1.2734375F - 9.5F, 1270 + 19 * 64});
}

TEST_CASE("without samples, the report is of random inputs") {
  const Outcome made = CompileProto(RoundedProduct(), ByBf16());
  REQUIRE(made.message.empty());
  REQUIRE(made.compiled.movement.size() == 1);
  CHECK(made.compiled.movement[0].relative > 0);
  CHECK(made.compiled.movement[0].relative < 0.01);
  const Outcome again = CompileProto(RoundedProduct(), ByBf16());
  CHECK(again.compiled.movement[0].max_abs == made.compiled.movement[0].max_abs);
}

TEST_CASE("a model that does not run with random inputs compiles, and the report says why") {
  onnx::ModelProto model = RoundedProduct();
  onnx::GraphProto* graph = model.mutable_graph();
  graph->mutable_node(0)->set_input(0, "rows");
  SetValue(graph->mutable_input(0), "x", {64}, onnx::TensorProto::INT64);
  AddFloats(graph, "table", {2, 10}, std::vector<float>(20, 1.5F));
  AddNode(graph, "Gather", {"table", "x"}, "rows");
  graph->mutable_node()->SwapElements(0, 1);
  const Outcome made = CompileProto(model, ByBf16());
  REQUIRE(made.message.empty());
  CHECK(made.compiled.movement.empty());
  CHECK_THAT(made.compiled.unmeasured,
             Catch::Contains("it does not run with random inputs: ") && Catch::Contains("rewire.gather"));
}

TEST_CASE("convolutions: which compute in bf16, and why others do not") {
  const Outcome plain = CompileProto(ConvOf(8, 2), ByBf16());
  CHECK(ReasonOf(plain).empty());
  CHECK(Bf16Bytes(plain.compiled.module) == 16 * 8 * 4 * 2);
  // Fifteen channels are padded to eight pairs.
  CHECK(Bf16Bytes(CompileProto(ConvOf(15, 2), ByBf16()).compiled.module) == 16 * 16 * 4 * 2);
  const Outcome each = CompileProto(ConvOf(4, 3, 4), ByBf16());
  CHECK(ReasonOf(each) == "it is depthwise, and adds no products of several channels");
  CHECK(Bf16Bytes(each.compiled.module) == 0);
  const Outcome winograd = CompileProto(ConvOf(32, 3, 1, 18), ByBf16());
  CHECK(ReasonOf(winograd) == "Winograd's form in f32 is faster; its weights are rounded to bf16");
  CHECK(Bf16Bytes(winograd.compiled.module) == 32 * 32 * 9 * 2);
  CHECK(winograd.compiled.movement.at(0).relative > 0);
  // The direct form is faster if much that is computed lies outside of the image, or each sum has few
  // products. So it is where a small image would wait for weights that are eight times as large.
  for (const auto& [channels, image] : {std::pair(32, 8), std::pair(8, 18), std::pair(256, 10)}) {
    INFO(channels << " channels, images of " << image);
    CHECK(ReasonOf(CompileProto(ConvOf(channels, 3, 1, image), ByBf16())).empty());
  }
  const Outcome few = CompileProto(ConvOf(3, 2), ByBf16());
  CHECK(ReasonOf(few) == "there is no kernel of bf16 for it, or f32 is faster");
  CHECK(Bf16Bytes(few.compiled.module) == 0);
}

TEST_CASE("for a CPU with tiles, convolutions of few channels and in Winograd's form compute in bf16 too") {
  const Outcome winograd = CompileProto(ConvOf(32, 3, 1, 18), ByBf16(Cpu::kTiles));
  CHECK(ReasonOf(winograd).empty());
  CHECK(Bf16Bytes(winograd.compiled.module) == 32 * 32 * 9 * 2);
  // A row of the window is multiplied at once, but for a small one that saves nothing.
  CHECK_FALSE(ReasonOf(CompileProto(ConvOf(1, 9, 1, 12), ByBf16(Cpu::kVectors))).empty());
  CHECK(ReasonOf(CompileProto(ConvOf(1, 9, 1, 12), ByBf16(Cpu::kTiles))).empty());
  CHECK(ReasonOf(CompileProto(ConvOf(3, 2), ByBf16(Cpu::kTiles))).empty());
  CHECK(ReasonOf(CompileProto(ConvOf(4, 1), ByBf16(Cpu::kTiles))) ==
        "there is no kernel of bf16 for it, or f32 is faster");
  // Programs are those of one of the two on every machine.
  const Outcome native = CompileProto(ConvOf(32, 3, 1, 18), ByBf16(Cpu::kNative));
  CHECK(ReasonOf(native).empty() == CpuHasAmx());
}

TEST_CASE("for a CPU with tiles, volumes have Winograd's form where it is faster than vectors of bf16") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {1, 32, 4, 18, 18});
  AddFloats(model.mutable_graph(), "w", {32, 32, 3, 3, 3}, std::vector<float>(32 * 32 * 27, 0.5F));
  AddNode(model.mutable_graph(), "Conv", {"x", "w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {1, 32, 2, 16, 16});
  for (const Cpu cpu : {Cpu::kVectors, Cpu::kTiles})
    CHECK(ReasonOf(CompileProto(model, ByBf16(cpu))) ==
          "Winograd's form in f32 is faster; its weights are rounded to bf16");
}

TEST_CASE("C takes the CPU as an option, and refuses others") {
  const std::string model = ConvOf(8, 2).SerializeAsString();
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  options.precision = kRewirePrecisionBf16;
  const auto compile = [&](std::uint32_t cpu) {
    options.cpu = cpu;
    RewireExecutable* executable = nullptr;
    const RewireStatus status =
        rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &options, nullptr, &executable);
    rewire_executable_destroy(executable);
    return status;
  };
  CHECK(compile(kRewireCpuNative) == kRewireOk);
  CHECK(compile(kRewireCpuVectors) == kRewireOk);
  CHECK(compile(kRewireCpuTiles) == kRewireOk);
  CHECK(compile(3) == kRewireInvalidArgument);
  CHECK(std::string(rewire_last_error_message()).find("cpu is 3, which stands for nothing") !=
        std::string::npos);
}

// The program after the pass round-early, for an input x of [2, 24]. With it and without it, results are the
// same.
std::string RoundedEarly(const onnx::ModelProto& model) {
  CompileOptions options = ByBf16(), without = ByBf16();
  std::string text;
  options.dump = [&](const std::string& stage, const std::string& program) {
    if (stage == "round-early") text = program;
  };
  without.disabled_passes = {"round-early"};
  const Outcome early = CompileProto(model, options), late = CompileProto(model, without);
  REQUIRE(early.message.empty());
  CHECK(RunOnCounts(early.compiled.module, {2, 24}).values ==
        RunOnCounts(late.compiled.module, {2, 24}).values);
  return text;
}

std::size_t CountOf(const std::string& type, const std::string& text) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(type, at)) != std::string::npos; ++at) ++found;
  return found;
}

// Different floats from -0.4 to 0.57.
std::vector<float> SmallFloats(std::size_t count) {
  std::vector<float> floats(count);
  for (std::size_t i = 0; i < count; ++i) floats[i] = static_cast<float>(i * 7 % 31) / 31 - 0.4F;
  return floats;
}

// A model whose input x has the shape [2, 24], and a weight w of [24, 24].
onnx::ModelProto ModelOfSquareProducts() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {2, 24});
  AddFloats(model.mutable_graph(), "w", {24, 24}, SmallFloats(24 * 24));
  return model;
}

// The program after a pass. What bf16 moves, of this model's only output, is told and small.
std::string TextAfter(const std::string& pass, const onnx::ModelProto& model) {
  CompileOptions options = ByBf16();
  std::string text;
  options.dump = [&](const std::string& stage, const std::string& program) {
    if (stage == pass) text = program;
  };
  const Outcome made = CompileProto(model, options);
  INFO(made.message);
  REQUIRE(made.message.empty());
  CHECK(made.compiled.movement.at(0).relative > 0);
  CHECK(made.compiled.movement.at(0).relative < 0.01);
  return text;
}

TEST_CASE("what only products in bf16 read is written in bf16, also through what moves elements") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "v", {48, 8}, SmallFloats(384));
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "MatMul", {"a", "w"}, "b");
  // a is read by a product and by a concat that only a product reads; so is b.
  AddInt(AddNode(graph, "Concat", {"a", "b"}, "c"), "axis", 1);
  AddNode(graph, "MatMul", {"c", "v"}, "d");
  // This concat has x, which is f32.
  AddInt(AddNode(graph, "Concat", {"d", "x"}, "e"), "axis", 1);
  AddFloats(graph, "u", {32, 8}, SmallFloats(256));
  AddNode(graph, "MatMul", {"e", "u"}, "y");
  SetValue(graph->add_output(), "y", {2, 8});
  const std::string text = RoundedEarly(model);
  CHECK(CountOf(": bf16[2, 24] =", text) == 2);
  CHECK(CountOf(": bf16[2, 48] =", text) == 1);
  CHECK(CountOf(": f32[2, 8] =", text) == 2);
  CHECK(CountOf(": f32[2, 32] =", text) == 1);
}

TEST_CASE("what only products in bf16 read is written in bf16, and results stay the same") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "Relu", {"a"}, "b");
  AddNode(graph, "MatMul", {"b", "w"}, "c");
  // c is read by a product and by a sum: it stays f32.
  AddNode(graph, "MatMul", {"c", "w"}, "d");
  AddNode(graph, "Sigmoid", {"c"}, "e");
  AddNode(graph, "Mul", {"d", "e"}, "y");
  SetValue(graph->add_output(), "y", {2, 24});
  const std::string text = RoundedEarly(model);
  CHECK(CountOf("bf16[2, 24]", text) == 1);
}

TEST_CASE("what is elementwise between products reads and writes bf16, and before an output f32") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "slope", {24}, std::vector<float>(24, 0.25F));
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "PRelu", {"a", "slope"}, "b");
  AddNode(graph, "MatMul", {"b", "w"}, "c");
  AddNode(graph, "PRelu", {"c", "slope"}, "y");
  SetValue(graph->add_output(), "y", {2, 24});
  const std::string text = TextAfter("fuse-elementwise", model);
  CHECK(CountOf(": bf16[2, 24] =", text) == 2);  // a and b
  CHECK(CountOf(": bf16[2, 24] = rewire.fused", text) == 1);
}

TEST_CASE("a residual is bf16 where a product in bf16 reads it too, and the sum is rounded once") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "MatMul", {"a", "w"}, "b");
  AddNode(graph, "Add", {"a", "b"}, "c");
  AddNode(graph, "MatMul", {"c", "w"}, "d");
  AddNode(graph, "Add", {"c", "d"}, "y");
  SetValue(graph->add_output(), "y", {2, 24});
  const std::string text = TextAfter("round-early", model);
  // a and c; y is an output.
  CHECK(CountOf(": bf16[2, 24] =", text) == 2);
}

TEST_CASE("a power whose exponent has more dimensions than the tensor is not rounded early") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "two", {1, 1, 1}, {2});
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "Pow", {"a", "two"}, "b");
  AddNode(graph, "ReduceMean", {"b"}, "y");
  SetValue(graph->add_output(), "y", {1, 1, 1});
  CHECK(CountOf(": bf16[1, 2, 24] =", RoundedEarly(model)) == 0);
}

TEST_CASE("bf16 is added to a constant that has more dimensions than the tensor") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "one", {1, 1, 1}, {1});
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "Add", {"a", "one"}, "b");
  AddNode(graph, "MatMul", {"b", "w"}, "y");
  SetValue(graph->add_output(), "y", {1, 2, 24});
  CHECK(CountOf(": bf16[1, 2, 24] =", RoundedEarly(model)) == 1);
}

TEST_CASE("bf16 runs through an expression that is too large for one program") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  // All products are needed before the first sum.
  constexpr int kTerms = 11;
  for (int i = 0; i < kTerms; ++i) {
    const std::string name = "c" + std::to_string(i);
    AddFloats(graph, name, {1}, {0.5F + 0.125F * static_cast<float>(i)});
    AddNode(graph, "Mul", {"a", name}, "t" + std::to_string(i));
  }
  std::string sum = "t0";
  for (int i = 1; i < kTerms; ++i) {
    const std::string next = "s" + std::to_string(i);
    AddNode(graph, "Add", {sum, "t" + std::to_string(i)}, next);
    sum = next;
  }
  AddNode(graph, "MatMul", {sum, "w"}, "y");
  SetValue(graph->add_output(), "y", {2, 24});
  const std::string text = TextAfter("fuse-elementwise", model);
  CHECK(CountOf("rewire.fused", text) >= 2);
  CHECK(CountOf("rewire.add", text) + CountOf("rewire.mul", text) == 0);
}

TEST_CASE("bf16 runs without any one pass") {
  onnx::ModelProto model = ModelOfSquareProducts();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "slopes", {24}, SmallFloats(24));
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "PRelu", {"a", "slopes"}, "b");
  AddNode(graph, "MatMul", {"b", "w"}, "y");
  SetValue(graph->add_output(), "y", {2, 24});
  const Outcome whole = CompileProto(model, ByBf16());
  REQUIRE(whole.message.empty());
  const Answer expected = RunOnCounts(whole.compiled.module, {2, 24});
  for (const std::string& pass : CompilerPasses()) {
    CompileOptions options = ByBf16();
    options.disabled_passes = {pass};
    options.check_passes = true;
    const Outcome made = CompileProto(model, options);
    INFO(pass << ": " << made.message);
    REQUIRE(made.message.empty());
    const Answer answer = RunOnCounts(made.compiled.module, {2, 24});
    INFO(answer.error);
    REQUIRE(answer.values.size() == expected.values.size());
    for (std::size_t i = 0; i < answer.values.size(); ++i)
      CHECK(answer.values[i] == Approx(expected.values[i]).epsilon(0.02).margin(0.02));
  }
}

TEST_CASE("what a depthwise convolution reads stays f32, and what it writes for a product is bf16") {
  const std::int64_t channels = 32;
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, channels, 6, 7});
  const auto floats = [&](const char* name, const std::vector<std::int64_t>& dims, std::int64_t count) {
    std::vector<float> weights(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>(i * 7 % 31) / 310 - 0.05F;
    AddFloats(graph, name, dims, weights);
  };
  floats("mix", {channels, channels, 1, 1}, channels * channels);
  floats("each", {channels, 1, 3, 3}, channels * 9);
  AddNode(graph, "Conv", {"x", "mix"}, "a");
  AddInt(AddNode(graph, "Conv", {"a", "each"}, "b"), "group", channels);
  AddNode(graph, "Conv", {"b", "mix"}, "y");
  SetValue(graph->add_output(), "y", {1, channels, 4, 5});
  const std::string text = TextAfter("round-early", model);
  const std::string size = std::to_string(channels) + "]";
  CHECK(text.find("bf16[1, 6, 7, " + size) == std::string::npos);
  CHECK(text.find("bf16[1, 4, 5, " + size) != std::string::npos);
}

TEST_CASE("bf16 refuses options that are for others") {
  CompileOptions kept = ByBf16();
  kept.calibration.keep_float = {"y"};
  CHECK(CompileProto(RoundedProduct(), kept).message ==
        "model: nodes to keep float are for precision int8 alone");
  CompileOptions device = ByBf16();
  device.device = "opencl:1";
  CHECK(CompileProto(RoundedProduct(), device).message ==
        "model: precision bf16 is for the CPU alone, and the device is \"opencl:1\"");
  CompileOptions wrong = ByBf16();
  float element = 0;
  const std::vector<std::int64_t> shape = {1};
  wrong.calibration.data = {{{"x", *Tensor::CopyOf(TensorView(&element, kFloat32, shape))}}};
  CHECK_THAT(CompileProto(RoundedProduct(), wrong).message, Catch::Contains("it has rank 1, expected 2"));
}

TEST_CASE("C: bf16 with random inputs") {
  const std::string model = RoundedProduct().SerializeAsString();
  std::vector<std::string> told;
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  options.precision = kRewirePrecisionBf16;
  options.context = &told;
  options.moved = [](void* context, const RewireOutputMovement* output) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(output->output);
  };
  options.unmeasured = [](void* context, const char* reason) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(reason);
  };
  RewireCompileReport report{};
  report.struct_size = sizeof(report);
  RewireExecutable* executable = nullptr;
  REQUIRE(rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &options, &report,
                                &executable) == kRewireOk);
  rewire_executable_destroy(executable);
  CHECK(report.quantized == 1);
  CHECK(told == std::vector<std::string>{"y"});
}

TEST_CASE("vm-compile --precision bf16 reports") {
  const TempFolder folder;
  folder.Write("model.onnx", RoundedProduct().SerializeAsString());
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"model.onnx", "-o", "model.rwx", "--precision", "bf16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram("vm-compile", arguments, folder.path());
  };
  CHECK_THAT(compile({}).out, Catch::Contains("1 of 1 convolutions and products compute with bf16\n"
                                              "output y moved from float by at most "));
  const auto json = nlohmann::json::parse(compile({"--json"}).out);
  CHECK(json["quantized"] == 1);
  CHECK(json["unmeasured"] == "");
  CHECK(json["movement"][0]["relative"] > 0);
}

}  // namespace
}  // namespace rewire::test
