// SPDX-License-Identifier: Apache-2.0
//
// Models of TensorFlow Lite. tests/compiler/tflite compares with LiteRT; here is what needs no other program:
// which files are refused, with which words, and that no bytes do harm.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/compiler/import/tflite_builtins.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/attribute_rules.h"
#include "rewire/executable_format/metadata/model_metadata.h"
#include "rewire/tests/compiler/import/tflite_builder.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

using Graph = TfliteBuilder::Graph;
using Ints = TfliteBuilder::Ints;
using Bytes = std::vector<std::int8_t>;

constexpr std::int32_t kConv = 3, kFullyConnected = 9, kReshape = 22;
constexpr std::int32_t kCallOnce = 129, kVarHandle = 142, kReadVariable = 143, kAssignVariable = 144;

// A tensor of i8 with one scale.
TfliteBuilder::TensorSpec ByteTensor(const std::string& name, Ints shape, float scale, std::int64_t zero) {
  TfliteBuilder::TensorSpec tensor{name, kTfliteInt8, std::move(shape), "", {{scale}, {zero}}, -1, {}};
  return tensor;
}

// An image of 3 x 3 with 2 channels, convolved by windows of 2 x 2 to 2 channels with RELU6, flattened, and
// multiplied. One weight scale for each channel of the convolution.
struct Network {
  Graph graph;
  std::int32_t image, weights, bias, conv, shape, flat, matrix, terms, scores;
  Bytes window = {1, -2, 3, 4, -5, 6, 7, -8, 9, 10, -11, 12, 13, -14, 15, 16};  // OHWI
  Bytes rows = {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8};
  std::vector<std::int32_t> conv_bias = {100, -50}, terms_bias = {7, -9};

  Network() {
    image = graph.Add(ByteTensor("image", {1, 3, 3, 2}, 0.5F, 3));
    weights = graph.Add({"window",
                         kTfliteInt8,
                         {2, 2, 2, 2},
                         TfliteBuilder::BytesOf(window),
                         {{0.25F, 0.1F}, {0, 0}, 0},
                         -1,
                         {}});
    bias = graph.Add({"bias", kTfliteInt32, {2}, TfliteBuilder::BytesOf(conv_bias), {}, -1, {}});
    conv = graph.Add(ByteTensor("conv", {1, 2, 2, 2}, 0.4F, -10));
    shape = graph.Add({"shape", kTfliteInt32, {2}, TfliteBuilder::BytesOf(Ints{1, 8}), {}, -1, {}});
    flat = graph.Add(ByteTensor("flat", {1, 8}, 0.4F, -10));
    matrix = graph.Add(ByteTensor("matrix", {2, 8}, 0.3F, 0));
    graph.tensors.back().bytes = TfliteBuilder::BytesOf(rows);
    terms = graph.Add({"terms", kTfliteInt32, {2}, TfliteBuilder::BytesOf(terms_bias), {}, -1, {}});
    scores = graph.Add(ByteTensor("scores", {1, 2}, 1.5F, 5));
    graph.operators = {{kConv,
                        {image, weights, bias},
                        {conv},
                        1,
                        {{0, std::int8_t{1}}, {1, 1}, {2, 1}, {3, std::int8_t{3}}, {4, 1}, {5, 1}}},
                       {kReshape, {conv, shape}, {flat}},
                       {kFullyConnected, {flat, matrix, terms}, {scores}, 8, {{0, std::int8_t{0}}}}};
    graph.inputs = {image};
    graph.outputs = {scores};
  }

  // Computes the network in plain arithmetic.
  Bytes Expected(const Bytes& x) const {
    const auto quantized = [](std::int32_t sum, float scale, int zero, int least, int most) {
      const float scaled = std::nearbyint(static_cast<float>(sum) * scale) + static_cast<float>(zero);
      return static_cast<std::int8_t>(
          std::clamp(scaled, static_cast<float>(least), static_cast<float>(most)));
    };
    const float of_channel[] = {0.25F, 0.1F};
    Bytes between(8), result(2);
    for (int y = 0; y < 2; ++y) {
      for (int k = 0; k < 2; ++k) {
        for (int channel = 0; channel < 2; ++channel) {
          std::int32_t sum = conv_bias[static_cast<std::size_t>(channel)];
          for (int i = 0; i < 8; ++i) {
            const int row = y + i / 4, column = k + i / 2 % 2;
            sum += (x[static_cast<std::size_t>((row * 3 + column) * 2 + i % 2)] - 3) *
                   window[static_cast<std::size_t>(channel * 8 + i)];
          }
          // RELU6 ends at 6 / 0.4 steps above the zero point.
          between[static_cast<std::size_t>((y * 2 + k) * 2 + channel)] =
              quantized(sum, 0.5F * of_channel[channel] / 0.4F, -10, -10, 5);
        }
      }
    }
    for (std::size_t row = 0; row < 2; ++row) {
      std::int32_t sum = terms_bias[row];
      for (std::size_t i = 0; i < 8; ++i) sum += (between[i] + 10) * rows[row * 8 + i];
      result[row] = quantized(sum, 0.4F * 0.3F / 1.5F, 5, -128, 127);
    }
    return result;
  }
};

// A delay: each run gives what the last run was given, turned by one place more. It begins with the bytes of
// `first`.
std::vector<Graph> Delay(const std::string& first) {
  Graph graph, init;
  const auto handle = graph.Add({"state", kTfliteResource, {}, "", {}, -1, {}});
  const auto x = graph.Add(ByteTensor("x", {1, 4}, 1, 0));
  const auto seen = graph.Add(ByteTensor("seen", {1, 4}, 1, 0));
  const auto matrix = graph.Add(ByteTensor("matrix", {4, 4}, 1, 0));
  Bytes turn(16);
  for (std::size_t i = 0; i < 4; ++i) turn[i * 4 + (i + 1) % 4] = 1;
  graph.tensors.back().bytes = TfliteBuilder::BytesOf(turn);
  const auto next = graph.Add(ByteTensor("turned", {1, 4}, 1, 0));
  const auto y = graph.Add(ByteTensor("y", {1, 4}, 1, 0));
  const std::vector<std::pair<int, TfliteBuilder::Option>> named = {{0, std::string("")},
                                                                    {1, std::string("state")}};
  graph.operators = {{kCallOnce, {}, {}, 103, {{0, 1}}},
                     {kVarHandle, {}, {handle}, 111, named},
                     {kReadVariable, {handle}, {seen}},
                     {kFullyConnected, {seen, matrix, -1}, {next}, 8, {}},
                     {kFullyConnected, {x, matrix, -1}, {y}, 8, {}},
                     {kAssignVariable, {handle, y}, {}}};
  graph.inputs = {x};
  graph.outputs = {next};
  const auto of_init = init.Add({"handle", kTfliteResource, {}, "", {}, -1, {}});
  const auto begin = init.Add(ByteTensor("begin", {1, 4}, 1, 0));
  init.tensors.back().bytes = first;
  init.operators = {{kVarHandle, {}, {of_init}, 111, named}, {kAssignVariable, {of_init, begin}, {}}};
  return {graph, init};
}

std::string MessageOf(const std::vector<Graph>& graphs) {
  const Outcome outcome = CompileBytes(TfliteBuilder::Write(graphs));
  std::string message = outcome.message;
  for (const compiler::Unsupported& node : outcome.unsupported)
    message += "; " + node.op_type + " '" + node.node + "': " + node.reason;
  return message;
}

// The message for the network after a change.
std::string MessageWith(const std::function<void(Network&)>& change) {
  Network network;
  change(network);
  return MessageOf({network.graph});
}

}  // namespace

TEST_CASE("a .tflite file of bytes gives what its arithmetic says") {
  const Network network;
  Outcome outcome = CompileBytes(TfliteBuilder::Write({network.graph}));
  REQUIRE(outcome.message.empty());
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  VirtualMachine vm(*program);
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Bytes image(18);
    for (std::int8_t& byte : image) byte = static_cast<std::int8_t>(static_cast<int>(random() % 256) - 128);
    REQUIRE(vm.TrySetInput("image", TensorView(image.data(), kInt8, {1, 3, 3, 2})));
    REQUIRE(vm.TryInvoke());
    const Tensor scores = vm.result().tensor();
    const Bytes given(scores.data<std::int8_t>(), scores.data<std::int8_t>() + 2);
    CHECK(given == network.Expected(image));
  }
}

TEST_CASE("variables of a .tflite file become inputs and outputs") {
  Outcome outcome = CompileBytes(TfliteBuilder::Write(Delay(std::string(4, '\x80'))));
  REQUIRE(outcome.message.empty());
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const auto& main = executable->module().functions[0];
  REQUIRE(main.inputs.size() == 2);
  CHECK(main.inputs[0].name == "x");
  CHECK(main.inputs[1].name == "state");
  REQUIRE(main.output_names.size() == 2);
  CHECK(main.output_names[0] == "turned");
  CHECK(main.output_names[1] == "state.next");
  // A run gives what the last one was given, turned once more.
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  VirtualMachine vm(*program);
  Bytes x = {1, 2, 3, 4}, state = {5, 6, 7, 8};
  REQUIRE(vm.TrySetInput("x", TensorView(x.data(), kInt8, {1, 4})));
  REQUIRE(vm.TrySetInput("state", TensorView(state.data(), kInt8, {1, 4})));
  REQUIRE(vm.TryInvoke());
  const auto bytes_of = [&](std::uint32_t i) {
    const Tensor tensor = vm.result().field(i).tensor();
    return Bytes(tensor.data<std::int8_t>(), tensor.data<std::int8_t>() + 4);
  };
  CHECK(bytes_of(0) == Bytes{6, 7, 8, 5});
  CHECK(bytes_of(1) == Bytes{2, 3, 4, 1});
  const ModelMetadata metadata = ReadModelMetadata(executable->module());
  REQUIRE(metadata.properties.size() == 1);
  CHECK(metadata.properties[0] == std::pair<std::string, std::string>("variable state", "128"));
}

TEST_CASE("wrong .tflite files are refused with the place") {
  using Message = std::pair<const char*, std::function<void(Network&)>>;
  const Message messages[] = {
      {"model: operator 0 (CONV_2D): input 1 is tensor 99, and the subgraph has 9",
       [](Network& n) { n.graph.operators[0].inputs[1] = 99; }},
      {"model: operator 1 (RESHAPE): output 0 is tensor -1, and the subgraph has 9",
       [](Network& n) { n.graph.operators[1].outputs[0] = -1; }},
      {"model: operator 2 has operator code 7, and the file has 3",
       [](Network& n) { n.graph.operators[2].opcode_index = 7; }},
      {"model: input 0 is tensor 40, and the subgraph has 9", [](Network& n) { n.graph.inputs = {40}; }},
      {"model: output 0 is tensor 40, and the subgraph has 9", [](Network& n) { n.graph.outputs = {40}; }},
      {"model: input 1 is tensor 0 ('image') again", [](Network& n) { n.graph.inputs.push_back(n.image); }},
      {"model: operator 1 (RESHAPE): output 0 is tensor 3 ('conv'), which has a value before",
       [](Network& n) { n.graph.operators[1].outputs = {n.conv}; }},
      {"model: operator 0 (CONV_2D): input 0: tensor 5 ('flat') is read before an operator has computed it",
       [](Network& n) { n.graph.operators[0].inputs[0] = n.flat; }},
      {"model: operator 0 (CONV_2D): input 1: tensor 1 ('window') has 16 bytes, and its shape [2, 2, 2, 3] "
       "takes 24",
       [](Network& n) { n.graph.tensors[1].shape[3] = 3; }},
      {"model: operator 0 (CONV_2D): input 1: dimension 3 of tensor 1 ('window') is -2, expected 0 or more",
       [](Network& n) { n.graph.tensors[1].shape[3] = -2; }},
      {"model: operator 0 (CONV_2D): input 1: tensor 1 ('window') has 33 dimensions, the limit is 32",
       [](Network& n) { n.graph.tensors[1].shape = Ints(33, 1); }},
      {"model: operator 0 (CONV_2D): input 1: tensor 1 ('window') has buffer 99, and the file has 6",
       [](Network& n) { n.graph.tensors[1].buffer = 99; }},
      {"model: tensor 0 ('image') has element type 5 of the format, which is not supported",
       [](Network& n) { n.graph.tensors[0].type = 5; }},
      {"model: scale 0 of operator 0 (CONV_2D): input 0 is 0, expected a positive number",
       [](Network& n) { n.graph.tensors[0].quantized.scales = {0}; }},
      {"model: zero point 0 of operator 0 (CONV_2D): input 0 is 200, expected -128 to 127",
       [](Network& n) { n.graph.tensors[0].quantized.zeros = {200}; }},
      {"model: operator 0 (CONV_2D): input 0 has 1 scales and 2 zero points",
       [](Network& n) {
         n.graph.tensors[0].quantized.zeros = {1, 2};
       }},
      {"model: operator 0 (CONV_2D): input 1 has 2 scales for the positions along axis 7 of [2, 2, 2, 2]",
       [](Network& n) { n.graph.tensors[1].quantized.axis = 7; }},
      {"model: operator 0 (CONV_2D): input 1 has a scale for each position along axis 1, which is not "
       "supported here",
       [](Network& n) { n.graph.tensors[1].quantized.axis = 1; }},
      {"model: operator 0 (CONV_2D): input 0 is quantized in another way than by scales and zero points, "
       "which is not supported",
       [](Network& n) { n.graph.tensors[0].quantized.details_type = 1; }},
      {"model: operator 0 (CONV_2D) has options of kind 8, expected kind 1",
       [](Network& n) { n.graph.operators[0].options_type = 8; }},
      {"model: 1 of 3 nodes are not supported; CONV_2D 'conv': padding is 7, expected 0 or 1",
       [](Network& n) { n.graph.operators[0].options[0].second = std::int8_t{7}; }},
      {"model: 1 of 3 nodes are not supported; CONV_2D 'conv': strides[1] is 0, expected 1 to 1073741824",
       [](Network& n) { n.graph.operators[0].options[1].second = 0; }},
      {"model: 1 of 3 nodes are not supported; CONV_2D 'conv': attribute fused_activation_function is 4, "
       "expected none, RELU, RELU_N1_TO_1 or RELU6",
       [](Network& n) { n.graph.operators[0].options[3].second = std::int8_t{4}; }},
      {"model: 1 of 3 nodes are not supported; CONV_2D 'conv': its bias is i8[1, 8], expected i32 of rank 1",
       [](Network& n) {
         n.graph.tensors[2] = ByteTensor("bias", {1, 8}, 1, 0);
         n.graph.tensors[2].bytes = std::string(8, 'b');
       }},
      {"model: 1 of 3 nodes are not supported; SVDF 'flat': the operator is not known; docs/operators.md "
       "lists those that are, docs/own-operators.md says how to add one",
       [](Network& n) { n.graph.operators[1].code = 27; }},
      {"model: 1 of 3 nodes are not supported; RESHAPE 'flat': an input and the output have different scales "
       "or zero points",
       [](Network& n) { n.graph.tensors[5].quantized.scales = {0.5F}; }},
  };
  for (const auto& [message, change] : messages) CHECK(MessageWith(change) == message);
  CHECK(CompileBytes(TfliteBuilder::Write({Network().graph}, 4)).message ==
        "model: version 4 of the format; expected 3");
  CHECK(CompileBytes(TfliteBuilder::Write({})).message == "model: it has no subgraph");
  const std::string whole = TfliteBuilder::Write({Network().graph});
  CHECK(CompileBytes(whole.substr(0, whole.size() / 2)).message ==
        "model: not a whole .tflite file: a table, vector or text lies outside it; copy the file again");
}

TEST_CASE("wrong variables of .tflite files are refused with the place") {
  const auto with = [](const std::function<void(std::vector<Graph>&)>& change) {
    std::vector<Graph> graphs = Delay(std::string(4, '\0'));
    change(graphs);
    return MessageOf(graphs);
  };
  CHECK(with([](auto& graphs) { graphs[0].operators[0].options[0].second = 5; }) ==
        "model: operator 0 (CALL_ONCE) calls subgraph 5, expected 1 to 1");
  CHECK(with([](auto& graphs) { graphs[1].operators[0].code = kReshape; }) ==
        "model: operator 0 (CALL_ONCE): subgraph 1: operator 0 (RESHAPE): only constants can be stored in "
        "variables before "
        "the first run");
  CHECK(with([](auto& graphs) { graphs[1].operators.erase(graphs[1].operators.begin()); }) ==
        "model: operator 0 (CALL_ONCE): subgraph 1: operator 0 (ASSIGN_VARIABLE): no VAR_HANDLE before it "
        "gives its input "
        "0");
  CHECK(with([](auto& graphs) { graphs[0].operators[2].inputs = {1}; }) ==
        "model: operator 2 (READ_VARIABLE): its input 0 is tensor 1 ('x'), which no VAR_HANDLE before it "
        "gives");
  CHECK(with([](auto& graphs) { graphs[0].operators[5].inputs.pop_back(); }) ==
        "model: operator 5 (ASSIGN_VARIABLE) has 1 inputs and 0 outputs, expected 2 and 0");
  CHECK(MessageOf(Delay("abcd")) ==
        "model: variable 'state' begins with bytes that differ, which is not supported");
}

TEST_CASE("no bytes of a .tflite file do harm") {
  const std::string files[] = {TfliteBuilder::Write({Network().graph}),
                               TfliteBuilder::Write(Delay(std::string(4, '\0')))};
  compiler::CompileOptions options;
  options.limits.work = 1 << 18;
  options.limits.fold_bytes = 1 << 20;
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string file = files[round % 2];
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      char& byte = file[random() % file.size()];
      const char values[] = {
          0, 1, -1, 127, -128, static_cast<char>(random()), static_cast<char>(byte ^ (1 << random() % 8))};
      byte = values[random() % std::size(values)];
    }
    if (random() % 16 == 0) file.resize(random() % file.size());
    const Outcome outcome = CompileBytes(file, "", options);
    refused += outcome.message.empty() ? 0 : 1;
    if (outcome.message.empty()) {
      Result<Executable> executable = Executable::FromModule(Module(outcome.compiled.module));
      INFO("round " << round);
      REQUIRE(executable);
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("operators of .tflite files know the options that files give them, and no others") {
  int seen = 0;
  for (const compiler::DomainOperator& each : compiler::AllOperators()) {
    if (std::string_view(each.domain) != "tflite") continue;
    ++seen;
    INFO(each.row->type);
    std::int32_t code = 0;
    while (code < 200 && compiler::tflite::NameOfBuiltin(code) != each.row->type) ++code;
    REQUIRE(code < 200);
    std::vector<std::string> fields, rules;
    if (const compiler::tflite::Options* options = compiler::tflite::OptionsOf(code)) {
      for (const compiler::tflite::OptionField& field : options->fields) fields.emplace_back(field.name);
    }
    std::string_view text = each.row->attributes;
    while (const auto rule = compiler::NextRule(&text)) rules.emplace_back(rule->name);
    std::sort(fields.begin(), fields.end());
    CHECK(fields == rules);
  }
  CHECK(seen >= 15);
}

}  // namespace rewire::test
