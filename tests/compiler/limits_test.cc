// SPDX-License-Identifier: Apache-2.0
// Small models that ask for work without end: they are refused, or compiled without that work.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

constexpr const char kDomain[] = "local";

onnx::ModelProto ModelWithFunctions() {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddNode(graph, "f0", {"x"}, "y")->set_domain(kDomain);
  SetValue(graph->add_output(), "y", {2});
  return model;
}

// A function of "a" that gives "c" by calling `callee` twice, one call after the other.
void AddCallingTwice(onnx::ModelProto* model, const std::string& name, const std::string& callee,
                     const std::string& domain) {
  onnx::FunctionProto* function = AddFunction(model, name, {"a"}, {"c"});
  onnx::GraphProto body;
  AddNode(&body, callee, {"a"}, "b")->set_domain(domain);
  AddNode(&body, callee, {"b"}, "c")->set_domain(domain);
  *function->mutable_node() = body.node();
}

onnx::ModelProto CallingTwice(int depth) {
  onnx::ModelProto model = ModelWithFunctions();
  for (int i = 0; i < depth; ++i) {
    const bool last = i + 1 == depth;
    AddCallingTwice(&model, "f" + std::to_string(i), last ? "Neg" : "f" + std::to_string(i + 1),
                    last ? "" : kDomain);
  }
  return model;
}

// Each operator as a kernel of its own.
compiler::CompileOptions Unfused() {
  compiler::CompileOptions options;
  options.disabled_passes = {"fuse-elementwise"};
  return options;
}

TEST_CASE("functions that call the next one twice are inlined within the limit of work") {
  const Outcome small = CompileProto(CallingTwice(4), Unfused());
  CHECK(small.message.empty());
  CHECK(small.compiled.kernel_calls == 16);
  compiler::CompileOptions tight;
  tight.limits.work = 1000;
  for (const int depth : {4, 40}) {
    CHECK_THAT(
        CompileProto(CallingTwice(depth), tight).message,
        Catch::Contains("functions inlined and loops tried, takes 1024 units of work or more, the limit is "
                        "1000; raise --max-work (CompileLimits::work)"));
  }
  // By default the limit is far above, and not without end.
  CHECK(compiler::CompileLimits().work < std::uint64_t{1} << 24);
}

TEST_CASE("a long chain of operators in place compiles") {
  const Outcome outcome = CompileProto(CallingTwice(13), Unfused());
  CHECK(outcome.message.empty());
  CHECK(outcome.compiled.kernel_calls == std::size_t{1} << 13);
}

TEST_CASE("a long chain of operators becomes many short programs") {
  const Outcome outcome = CompileProto(CallingTwice(13));
  CHECK(outcome.message.empty());
  CHECK(outcome.compiled.kernel_calls == ((1 << 13) + 23) / 24);
}

TEST_CASE("a function that calls itself is refused") {
  SECTION("itself") {
    onnx::ModelProto model = ModelWithFunctions();
    AddCallingTwice(&model, "f0", "f0", kDomain);
    CHECK_THAT(CompileProto(model).message, Catch::EndsWith("f0 'b': the function calls itself"));
  }
  SECTION("through another one") {
    onnx::ModelProto model = ModelWithFunctions();
    AddCallingTwice(&model, "f0", "f1", kDomain);
    AddCallingTwice(&model, "f1", "f0", kDomain);
    CHECK_THAT(CompileProto(model).message, Catch::EndsWith("f0 'b': the function calls itself"));
  }
}

TEST_CASE("loops in loops are compiled within the limit of work") {
  // Types that never hold make each loop be tried again, and what is in it each time.
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddInts(graph, "trips", {3}, true);
  onnx::GraphProto* body = graph;
  std::string carried = "x";
  constexpr int kDepth = 12;
  for (int i = 0; i < kDepth; ++i) {
    const std::string level = std::to_string(i);
    onnx::NodeProto* loop = AddNode(body, "Loop", {"trips", "", carried}, "out" + level);
    if (i > 0) {
      AddNode(body, "Concat", {"out" + level, "out" + level}, "result" + level);
      AddInt(body->mutable_node(body->node_size() - 1), "axis", 0);
    }
    body = AddGraph(loop, "body");
    carried = "in" + level;
    SetValue(body->add_input(), "iteration" + level, {}, onnx::TensorProto::INT64);
    SetValue(body->add_input(), "go" + level, {}, onnx::TensorProto::BOOL);
    SetValue(body->add_input(), carried, {""});
    SetValue(body->add_output(), "go" + level, {}, onnx::TensorProto::BOOL);
    SetValue(body->add_output(), i + 1 < kDepth ? "result" + std::to_string(i + 1) : "last", {""});
  }
  onnx::NodeProto* last = AddNode(body, "Concat", {carried, carried}, "last");
  AddInt(last, "axis", 0);
  SetValue(graph->add_output(), "out0", {""});
  compiler::CompileOptions options;
  options.limits.work = 50'000;
  CHECK_THAT(CompileProto(model, options).message, Catch::Contains("the limit is 50000"));
}

// Shape, then sums and products of what came before: each expression is about twice as long as the last.
onnx::ModelProto Squaring(int times) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", "M"});
  AddNode(graph, "Shape", {"x"}, "s0");
  for (int i = 0; i < times; ++i) {
    const std::string last = "s" + std::to_string(i);
    AddNode(graph, i % 2 == 0 ? "Add" : "Mul", {last, i % 3 == 0 ? "s0" : last}, "s" + std::to_string(i + 1));
  }
  AddNode(graph, "ConstantOfShape", {"s" + std::to_string(times)}, "y");
  SetValue(graph->add_output(), "y", {"", ""});
  return model;
}

TEST_CASE("dimensions that would be expressions without end are computed when the program runs") {
  for (const int times : {2, 30, 300}) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = CompileProto(Squaring(times));
    CHECK(outcome.message.empty());
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  }
}

TEST_CASE("a dimension that is too long to compute is refused, with what to do") {
  // Joined with one another along both axes, the dimensions double; their product has all products of terms.
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<Dim> dims;
  std::vector<std::string> names;
  dims.reserve(32);
  names.reserve(64);
  for (int i = 0; i < 64; ++i) names.push_back("dimension_with_a_long_name_" + std::to_string(i));
  for (int i = 0; i < 32; ++i) dims.emplace_back(names[static_cast<std::size_t>(i)].c_str());
  SetValue(graph->add_input(), "a", dims);
  for (int i = 0; i < 32; ++i)
    dims[static_cast<std::size_t>(i)] = names[static_cast<std::size_t>(i) + 32].c_str();
  SetValue(graph->add_input(), "b", dims);
  std::string last = "a";
  for (int i = 0; i < 32; ++i) {
    const std::string joined = "joined" + std::to_string(i);
    AddInt(AddNode(graph, "Concat", {last, "b"}, joined), "axis", i);
    last = joined;
  }
  AddInts(graph, "flat", {-1});
  AddNode(graph, "Reshape", {last, "flat"}, "y");
  SetValue(graph->add_output(), "y", {""});
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].node == "y");
  CHECK(outcome.unsupported[0].reason ==
        "a dimension is an expression of more than 1024 bytes; fix dimensions with --dim");
}

TEST_CASE("constants that take too much memory stay in the program") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {64}, std::vector<float>(64, 1));
  constexpr int kDoubled = 14;
  for (int i = 0; i < kDoubled; ++i) {
    const std::string last = i == 0 ? "w" : "w" + std::to_string(i);
    AddInt(AddNode(graph, "Concat", {last, last}, "w" + std::to_string(i + 1)), "axis", 0);
  }
  SetValue(graph->add_output(), "w" + std::to_string(kDoubled), {""});
  const Outcome all = CompileProto(model);
  CHECK(all.message.empty());
  CHECK(all.compiled.kernel_calls == 0);
  compiler::CompileOptions options;
  options.limits.fold_bytes = 10'000;
  const Outcome some = CompileProto(model, options);
  CHECK(some.message.empty());
  // 512 + 1,024 + 2,048 + 4,096 bytes fit, with four times the weights.
  CHECK(some.compiled.kernel_calls == kDoubled - 4);
  CHECK(some.compiled.constant_bytes < 20'000);
}

TEST_CASE("constants that take too long stay in the program") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {4, 4, 4}, std::vector<float>(64, 1));
  // So many labels are no chain of matrix products: 64^8 products.
  onnx::NodeProto* node = AddNode(graph, "Einsum", std::vector<std::string>(8, "w"), "y");
  AddString(node, "equation", "abc,def,ghi,jkl,mno,pqr,stu,vwx->");
  SetValue(graph->add_output(), "y", {});
  compiler::CompileOptions options;
  options.limits.fold_node_time = std::chrono::milliseconds(50);
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = CompileProto(model, options);
  CHECK(outcome.message.empty());
  CHECK(outcome.compiled.kernel_calls == 1);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("external data that is a pipe is refused at once") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rewire-pipe-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* weights = graph->add_initializer();
  weights->set_name("w");
  weights->set_data_type(onnx::TensorProto::FLOAT);
  weights->add_dims(1);
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = weights->add_external_data();
  entry->set_key("location");
  entry->set_value("pipe");
  AddNode(graph, "Relu", {"w"}, "y");
  SetValue(graph->add_output(), "y", {1});
  CHECK_THAT(CompileBytes(model.SerializeAsString(), folder.string()).message,
             Catch::EndsWith("it is a device or a pipe, a file is expected"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rewire::test
