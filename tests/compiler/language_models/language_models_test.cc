// SPDX-License-Identifier: Apache-2.0
// The parts of language models: weights that stay packed, caches that loops update in place, functions of the
// host.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

void Import(onnx::ModelProto* model, const std::string& domain) {
  onnx::OperatorSetIdProto* opset = model->add_opset_import();
  opset->set_domain(domain);
  opset->set_version(1);
}

onnx::NodeProto* AddProduct(onnx::GraphProto* graph, const std::vector<std::string>& inputs,
                            const std::string& output) {
  onnx::NodeProto* node = AddNode(graph, "MatMulNBits", inputs, output);
  node->set_domain("com.microsoft");
  AddInt(node, "K", 16);
  AddInt(node, "N", 16);
  AddInt(node, "bits", 4);
  AddInt(node, "block_size", 16);
  return node;
}

TEST_CASE("weights of 4 bits stay packed, once for all products by them") {
  onnx::ModelProto model = EmptyModel();
  Import(&model, "com.microsoft");
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 16});
  SetValue(graph->add_output(), "y", {1, 16});
  // Column j is 1 in row j, and 0 elsewhere.
  std::string codes;
  for (int j = 0; j < 16; ++j) {
    for (int k = 0; k < 16; k += 2)
      codes.push_back(static_cast<char>(0x88 + (k == j ? 0x01 : 0) + (k + 1 == j ? 0x10 : 0)));
  }
  AddWeight(graph, "codes", onnx::TensorProto::UINT8, {16, 1, 8})->set_raw_data(codes);
  // One that float16 does not hold.
  const bool half = GENERATE(true, false);
  AddFloats(graph, "scales", {16}, std::vector<float>(16, half ? 2 : 2.0001F));
  AddProduct(graph, {"x", "codes", "scales"}, "once");
  AddProduct(graph, {"once", "codes", "scales"}, "y");
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  const Module& module = outcome.compiled.module;
  std::size_t packed = 0, scales = 0;
  for (const Constant& constant : module.constants) {
    packed += constant.type.dtype == kUInt8 && constant.raw_bytes == 128 ? 1 : 0;
    scales +=
        constant.raw_bytes == (half ? 32 : 64) && constant.type.dtype == (half ? kFloat16 : kFloat32) ? 1 : 0;
    CHECK(constant.raw_bytes < 1024);
  }
  CHECK(packed == 1);
  CHECK(scales == 1);
  const Answer answer = RunOnCounts(module, {1, 16});
  for (std::size_t i = 0; i < 16; ++i)
    CHECK(answer.values[i] == Approx(static_cast<double>(i) * (half ? 4 : 4.0004)).epsilon(1e-4));
}

// A loop that carries a cache [1, 1, 4, 1], to which turn i adds 10 * i at position i.
onnx::ModelProto CacheLoop() {
  onnx::ModelProto model = EmptyModel(24);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 1, 4, 1});
  SetValue(graph->add_output(), "y", {1, 1, 4, 1});
  AddInts(graph, "three", {3}, true);
  AddInts(graph, "one", {1});
  AddInts(graph, "four_ones", {1, 1, 1, 1});
  AddFloats(graph, "ten", {}, {10});
  onnx::GraphProto* body = AddGraph(AddNode(graph, "Loop", {"three", "", "x"}, "y"), "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "going", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "before", {1, 1, 4, 1});
  AddInt(AddNode(body, "Cast", {"turn"}, "number"), "to", onnx::TensorProto::FLOAT);
  AddNode(body, "Mul", {"number", "ten"}, "tens");
  AddNode(body, "Reshape", {"tens", "four_ones"}, "row");
  AddNode(body, "Reshape", {"turn", "one"}, "place");
  AddNode(body, "TensorScatter", {"before", "row", "place"}, "after");
  AddNode(body, "Identity", {"going"}, "goes_on");
  SetValue(body->add_output(), "goes_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "after", {1, 1, 4, 1});
  return model;
}

Program Linked(const onnx::ModelProto& model, LinkOptions options = {}) {
  Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  return *Program::Link(*Executable::FromModule(std::move(outcome.compiled.module)), std::move(options));
}

TEST_CASE("a cache that a loop carries is updated in the memory of the host that donates it") {
  const Program program = Linked(CacheLoop());
  VirtualMachine vm(program);
  float cache[] = {1, 2, 3, 4};
  vm.SetInput("x", TensorView(cache, {1, 1, 4, 1}));
  SECTION("donated") {
    vm.Donate("x", "y");
    vm.RequireZeroCopy(true);
    vm.Invoke();
    CHECK(vm.Output("y").data<float>() == cache);
    CHECK(std::vector<float>(cache, cache + 4) == std::vector<float>{0, 10, 20, 4});
  }
  SECTION("not donated") {
    vm.Invoke();
    const float* y = vm.Output("y").data<float>();
    CHECK(std::vector<float>(y, y + 4) == std::vector<float>{0, 10, 20, 4});
    CHECK(std::vector<float>(cache, cache + 4) == std::vector<float>{1, 2, 3, 4});
  }
}

bool UpdatesInPlace(const onnx::ModelProto& model) {
  const Lines lines = RunPass("carry-in-place", model, {1, 1, 4, 1}).after;
  return std::any_of(lines.begin(), lines.end(),
                     [](const std::string& line) { return line.find("over input 0") != std::string::npos; });
}

TEST_CASE("carry-in-place: a cache is updated in place") { CHECK(UpdatesInPlace(CacheLoop())); }

TEST_CASE("carry-in-place: a former value that is read later stays") {
  onnx::ModelProto model = CacheLoop();
  onnx::NodeProto* loop = model.mutable_graph()->mutable_node(0);
  onnx::GraphProto* body = loop->mutable_attribute(0)->mutable_g();
  // y is the sum of the last cache and the one before it.
  AddNode(body, "Add", {"after", "before"}, "sum");
  body->mutable_output(1)->set_name("sum");
  CHECK_FALSE(UpdatesInPlace(model));
}

TEST_CASE("carry-in-place: what is stacked up stays as it was") {
  onnx::ModelProto model = CacheLoop();
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::NodeProto* loop = graph->mutable_node(0);
  loop->set_output(0, "last");
  loop->add_output("stacked");
  onnx::GraphProto* body = loop->mutable_attribute(0)->mutable_g();
  *body->add_output() = body->output(1);
  AddNode(graph, "Identity", {"stacked"}, "y");
  SetValue(graph->mutable_output(0), "y", {3, 1, 1, 4, 1});
  CHECK_FALSE(UpdatesInPlace(model));
}

TEST_CASE("carry-in-place: the first value is copied if something else reads it") {
  onnx::ModelProto model = CacheLoop();
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::NodeProto* loop = graph->mutable_node(0);
  loop->set_input(2, "first");
  loop->set_output(0, "last");
  AddNode(graph, "Neg", {"x"}, "first");
  AddNode(graph, "Add", {"last", "first"}, "y");
  const Lines lines = RunPass("carry-in-place", model, {1, 1, 4, 1}).after;
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [](const std::string& line) { return line.find("rewire.copy") != std::string::npos; }));
  CHECK(UpdatesInPlace(model));
}

TEST_CASE("nodes of the domain rewire.host call functions of the host") {
  onnx::ModelProto model = EmptyModel();
  Import(&model, "rewire.host");
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  SetValue(graph->add_output(), "y", {2});
  onnx::NodeProto* call = AddNode(graph, "seen", {"x", "x"}, "y");
  call->set_domain("rewire.host");
  SECTION("an output has the type of the input") {
    std::vector<float> seen;
    LinkOptions options;
    options.kernels.AddFunction(
        "host.seen",
        MakePackedFunction([&](kernel::TensorView a, kernel::TensorView b, kernel::TensorView out) {
          for (int i = 0; i < 2; ++i) seen.push_back(a.data<float>()[i]);
          for (int i = 0; i < 2; ++i) out.data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
        }));
    const Program program = Linked(model, std::move(options));
    VirtualMachine vm(program);
    const float x[] = {3, 4};
    vm.SetInput("x", TensorView(x, {2}));
    vm.Invoke();
    CHECK(seen == std::vector<float>{3, 4});
    CHECK(vm.Output("y").data<float>()[1] == 8);
  }
  SECTION("as many outputs as inputs at most") {
    for (const char* more : {"a", "b"}) call->add_output(more);
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].reason ==
          "it has 3 outputs, expected one at least, and at most one for each of its 2 inputs");
  }
  SECTION("attributes are not passed on") {
    AddInt(call, "level", 1);
    CHECK(CompileProto(model).unsupported[0].reason == "attribute 'level' is not known");
  }
}

}  // namespace
}  // namespace rewire::test
