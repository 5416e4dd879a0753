// SPDX-License-Identifier: Apache-2.0
// Constants that are packed or computed when a program is loaded, because they would make the file much
// larger.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "rewire/executable_format/writer.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/program.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// The program's constants, in the order of its table: "name", or "name at load" of those that are computed
// then. Without the pass, none is, and the results are the same.
std::vector<std::string> Constants(const onnx::ModelProto& model, const Shape& shape) {
  compiler::CompileOptions options;
  options.disabled_passes = {"compute-at-load"};
  const Outcome packed = CompileProto(model, options), given = CompileProto(model);
  REQUIRE(packed.message.empty());
  REQUIRE(given.message.empty());
  for (const Constant& constant : packed.compiled.module.constants)
    CHECK(constant.kind == ConstantKind::kData);
  CHECK(RunOnCounts(given.compiled.module, shape).values ==
        RunOnCounts(packed.compiled.module, shape).values);
  std::vector<std::string> names;
  for (const Constant& constant : given.compiled.module.constants)
    names.push_back(constant.name + (constant.kind == ConstantKind::kComputed ? " at load" : ""));
  return names;
}

// A product of x: f32[2, rows] by each of these weights, which have as many columns.
onnx::ModelProto Products(std::int64_t rows, const Ints& columns) {
  onnx::ModelProto model = ModelOf({2, rows});
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<std::string> products;
  for (const std::int64_t count : columns) {
    const std::string name = "w" + std::to_string(products.size());
    AddFloats(graph, name, {rows, count}, Numbers(rows * count));
    products.push_back("product" + name);
    AddNode(graph, "MatMul", {"x", name}, products.back());
  }
  AddInt(AddNode(graph, "Concat", products, "y"), "axis", 1);
  return model;
}

TEST_CASE("compute-at-load: one column is packed as 16") {
  // The bytes of 15 columns are added, at most 256.
  CHECK(Constants(Products(4, {1}), {2, 4}) == std::vector<std::string>{"w0.packed"});
  CHECK(Constants(Products(5, {1}), {2, 5}) == std::vector<std::string>{"w0.packed at load", "w0"});
  CHECK(Constants(Products(400, {16}), {2, 400}) == std::vector<std::string>{"w0.packed"});
}

TEST_CASE("compute-at-load: only those that grow most") {
  // By 11, 15 and 8 columns of 12 bytes. 19 columns are 228 bytes.
  CHECK(Constants(Products(3, {5, 1, 8}), {2, 3}) ==
        std::vector<std::string>{"w0.packed", "w2.packed", "w1.packed at load", "w1"});
}

TEST_CASE("compute-at-load: large weights may grow by a sixteenth") {
  // 300 columns become 304, and one 16. That is a sixteenth of 304 columns.
  CHECK(Constants(Products(300, {300, 16, 1}), {2, 300}) ==
        std::vector<std::string>{"w0.packed", "w1.packed", "w2.packed"});
  CHECK(Constants(Products(300, {300, 1}), {2, 300}) ==
        std::vector<std::string>{"w0.packed", "w1.packed at load", "w1"});
}

TEST_CASE("compute-at-load: weights that are packed in parts") {
  const auto constants = [](std::int64_t channels) {
    onnx::ModelProto model = ModelOf({1, channels, 2, 2});
    AddFloats(model.mutable_graph(), "w", {channels, 1, 2, 2}, Numbers(channels * 4));
    AddIntList(AddNode(model.mutable_graph(), "ConvTranspose", {"x", "w"}, "y"), "strides", {2, 2});
    return Constants(model, {1, channels, 2, 2});
  };
  // Each of the window's two rows becomes 16 columns of 2. The parts are joined at load, too.
  const std::string shape = "shape [1, 1, 4, 4]";
  CHECK(constants(2) == std::vector<std::string>{"w.packed", shape});
  CHECK(constants(3) == std::vector<std::string>{"w.packed at load", shape, "w", "w#1"});
}

TEST_CASE("compute-at-load: weights that several products share count once") {
  onnx::ModelProto model = ModelOf({2, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {4, 1}, Numbers(4));
  AddNode(graph, "Neg", {"x"}, "negative");
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "MatMul", {"negative", "w"}, "b");
  AddNode(graph, "Sub", {"a", "b"}, "y");
  CHECK(Constants(model, {2, 4}) == std::vector<std::string>{"w.packed"});
}

// Adds f32[rows, columns] that the model has as a formula, the cosines of products of a column and a row.
void AddFormula(onnx::GraphProto* graph, const std::string& name, std::int64_t rows, std::int64_t columns) {
  AddFloats(graph, name + ".a", {rows, 1}, Numbers(rows));
  AddFloats(graph, name + ".b", {1, columns}, Numbers(columns));
  AddNode(graph, "Mul", {name + ".a", name + ".b"}, name + ".product");
  AddNode(graph, "Cos", {name + ".product"}, name);
}

// x + f, where a graph makes f: f32[64, 64] of constants.
template <typename Make>
std::vector<std::string> ConstantsOfSum(const Make& make) {
  onnx::ModelProto model = ModelOf({64, 64});
  make(model.mutable_graph());
  AddNode(model.mutable_graph(), "Add", {"x", "f"}, "y");
  return Constants(model, {64, 64});
}

TEST_CASE("compute-at-load: what the model has as a formula") {
  const auto constants = [](std::int64_t columns) {
    onnx::ModelProto model = ModelOf({64, columns});
    AddFormula(model.mutable_graph(), "f", 64, columns);
    AddNode(model.mutable_graph(), "Add", {"x", "f"}, "y");
    return Constants(model, {64, columns});
  };
  CHECK(constants(2) == std::vector<std::string>{"f"});  // 512 bytes instead of 264 and a node
  CHECK(constants(3) == std::vector<std::string>{"f at load", "f.a", "f.b"});
}

TEST_CASE("compute-at-load: what is packed, transposed or seen under another shape behind a formula") {
  onnx::ModelProto model = ModelOf({2, 64});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFormula(graph, "f", 64, 64);
  AddNode(graph, "Transpose", {"f"}, "transposed");
  AddNode(graph, "MatMul", {"x", "transposed"}, "y");
  CHECK(Constants(model, {2, 64}) == std::vector<std::string>{"transposed.packed at load", "f.a", "f.b"});

  onnx::ModelProto view = ModelOf({16, 256});
  AddFormula(view.mutable_graph(), "f", 64, 64);
  AddInts(view.mutable_graph(), "shape", {16, 256});
  AddNode(view.mutable_graph(), "Reshape", {"f", "shape"}, "seen");
  AddNode(view.mutable_graph(), "Add", {"x", "seen"}, "y");
  CHECK(Constants(view, {16, 256}) ==
        std::vector<std::string>{"seen at load", "f.a", "f.b", "shape [16, 256]"});
}

TEST_CASE("compute-at-load: a formula that stands in the model twice is computed once") {
  onnx::ModelProto model = ModelOf({64, 64});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFormula(graph, "f", 64, 64);
  AddNode(graph, "Mul", {"f.a", "f.b"}, "again");
  AddNode(graph, "Cos", {"again"}, "g");
  AddNode(graph, "Add", {"x", "f"}, "sum");
  AddNode(graph, "Relu", {"sum"}, "relu");
  AddNode(graph, "Mul", {"relu", "g"}, "y");
  CHECK(Constants(model, {64, 64}) == std::vector<std::string>{"f at load", "f.a", "f.b"});
}

TEST_CASE("compute-at-load: formulas in blocks, and those that are results") {
  onnx::ModelProto model = ModelOf({64, 64});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFormula(graph, "f", 64, 64);
  AddInt(AddNode(graph, "ReduceMax", {"x"}, "largest"), "keepdims", 0);
  AddFloats(graph, "least", {}, {GENERATE(0.0F, 10000.0F)});
  AddNode(graph, "Greater", {"largest", "least"}, "condition");
  onnx::NodeProto* branch = AddNode(graph, "If", {"condition"}, "y");
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "Mul", {"x", "f"}, "product");
  SetValue(then->add_output(), "product", {64, 64});
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddNode(otherwise, "Identity", {"f"}, "same");
  SetValue(otherwise->add_output(), "same", {64, 64});
  CHECK(Constants(model, {64, 64}) == std::vector<std::string>{"least", "f at load", "f.a", "f.b"});
}

TEST_CASE("compute-at-load: what takes long for its size stays in the file") {
  // Products of [64, depth] and [depth, 64].
  const auto product = [](std::int64_t depth) {
    return ConstantsOfSum([=](onnx::GraphProto* graph) {
      AddFormula(graph, "a", 64, depth);
      AddFormula(graph, "b", depth, 64);
      AddNode(graph, "MatMul", {"a", "b"}, "f");
    });
  };
  CHECK(product(64) == std::vector<std::string>{"f at load", "a.a", "a.b", "b.a", "b.b"});
  CHECK(product(256) == std::vector<std::string>{"f"});
}

TEST_CASE("compute-at-load: what is not known to be fast stays in the file") {
  CHECK(ConstantsOfSum([](onnx::GraphProto* graph) {
          AddFormula(graph, "a", 64, 64);
          AddNode(graph, "Hardmax", {"a"}, "f");
        }) == std::vector<std::string>{"f"});
  CHECK(ConstantsOfSum([](onnx::GraphProto* graph) {
          AddFormula(graph, "both", 128, 64);
          onnx::NodeProto* split = AddNode(graph, "Split", {"both"}, "f");
          split->add_output("unused");
        }) == std::vector<std::string>{"f"});
}

// A chain of views of a formula: f32[64, 1024], of which runs read those at these places.
std::vector<std::string> ConstantsOfChain(const std::vector<int>& places) {
  onnx::ModelProto model = ModelOf({64, 1024});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFormula(graph, "0", 64, 1024);
  AddInts(graph, "wide", {64, 1024});
  AddInts(graph, "high", {1024, 64});
  for (int i = 0; i < places.back(); ++i)
    AddNode(graph, "Reshape", {std::to_string(i), i % 2 == 0 ? "high" : "wide"}, std::to_string(i + 1));
  std::string sum = "x";
  for (const int place : places) {
    const std::string next = place == places.back() ? "y" : "sum" + std::to_string(place);
    AddNode(graph, "Max", {sum, std::to_string(place)}, next);
    sum = next;
  }
  return Constants(model, {64, 1024});
}

TEST_CASE("compute-at-load: chains of more than 256 nodes stay in the file") {
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  CHECK(has(ConstantsOfChain({254}), "254 at load"));
  CHECK(has(ConstantsOfChain({256}), "256"));
  const std::vector<std::string> both = ConstantsOfChain({150, 300});
  CHECK(has(both, "150 at load"));
  CHECK(has(both, "300"));
}

TEST_CASE(
    "compute-at-load: the file holds what is smallest on the way, of large constants if it is no fourth") {
  // f32[rows, 64] of some of them, again and again.
  const auto constants = [](std::int64_t rows, std::int64_t times) {
    onnx::ModelProto model = ModelOf({rows, 64});
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "w", {rows, 64}, Numbers(rows * 64));
    AddInts(graph, "zero", {0});
    AddInts(graph, "end", {rows / times});
    AddNode(graph, "Slice", {"w", "zero", "end", "zero"}, "some");
    AddInts(graph, "repeats", {times, 1});
    AddNode(graph, "Tile", {"some", "repeats"}, "f");
    AddNode(graph, "Add", {"x", "f"}, "y");
    return Constants(model, {rows, 64});
  };
  const std::vector<std::string> at_load = {"f at load", "some"}, in_file = {"f"};
  CHECK(constants(64, 8) == at_load);
  CHECK(constants(256, 4) == at_load);  // 65,536 bytes
  CHECK(constants(260, 4) == in_file);
  CHECK(constants(260, 5) == at_load);
}

TEST_CASE("compute-at-load: all together write at most 256 MiB, half of what linking allows") {
  constexpr std::int64_t kRows = 2048, kColumns = 1024, kMiB = 1 << 20;
  constexpr std::size_t kFormulas = 34;
  onnx::ModelProto model = ModelOf({kRows, kColumns});
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<std::string> terms = {"x"};
  for (std::size_t i = 0; i < kFormulas; ++i) {
    terms.push_back("f" + std::to_string(i));
    AddFloats(graph, terms.back() + ".a", {kRows, 1}, Numbers(kRows));
    AddFloats(graph, terms.back() + ".b", {1, kColumns}, Numbers(kColumns));
    AddNode(graph, "Mul", {terms.back() + ".a", terms.back() + ".b"}, terms.back());
  }
  AddNode(graph, "Sum", terms, "y");
  compiler::CompileOptions options;
  options.disabled_passes = {"common-subexpressions"};  // their elements are the same
  Outcome outcome = CompileProto(model, options);
  REQUIRE(outcome.message.empty());
  std::int64_t written = 0, in_file = 0;
  for (const Constant& constant : outcome.compiled.module.constants) {
    if (constant.kind == ConstantKind::kComputed) written += kRows * kColumns * 4;
    if (constant.kind == ConstantKind::kData)
      in_file += static_cast<std::int64_t>(constant.stored.view.size());
  }
  CHECK(written == 256 * kMiB);
  LinkOptions half;
  half.limits.bytes = static_cast<std::uint64_t>(256 * kMiB + 8 * in_file);
  REQUIRE(half.kernels.AddLibrary("librewire_kernels_cpu.so"));
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable, std::move(half));
  INFO((program ? std::string() : std::string(program.error().message())));
  CHECK(program);
}

TEST_CASE("compute-at-load: weights that the file holds for others anyway") {
  // The table of words is that of the last product, too.
  onnx::ModelProto model = ModelOf({2, 64});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {64, 64}, Numbers(4096));
  AddNode(graph, "Transpose", {"w"}, "transposed");
  AddNode(graph, "MatMul", {"x", "transposed"}, "product");
  onnx::NodeProto* rows = AddNode(graph, "ArgMax", {"x"}, "rows");
  AddInt(rows, "axis", 1);
  AddInt(rows, "keepdims", 0);
  AddNode(graph, "Gather", {"w", "rows"}, "words");
  AddNode(graph, "Add", {"product", "words"}, "y");
  CHECK(Constants(model, {2, 64}) == std::vector<std::string>{"w", "y.bias", "transposed.packed at load"});
}

TEST_CASE("compute-at-load: weights of 16 bits stay so in the file") {
  const auto constants = [](std::int64_t rows) {
    onnx::ModelProto model = ModelOf({2, rows});
    onnx::GraphProto* graph = model.mutable_graph();
    onnx::TensorProto* weights = AddWeight(graph, "w", onnx::TensorProto::FLOAT16, {rows, 64});
    for (int i = 0; i < static_cast<int>(rows) * 64; ++i) weights->add_int32_data(0x3C00 + i % 5);
    AddInt(AddNode(graph, "Cast", {"w"}, "wide"), "to", onnx::TensorProto::FLOAT);
    AddNode(graph, "MatMul", {"x", "wide"}, "y");
    return Constants(model, {2, rows});
  };
  // Products read them as such.
  for (const std::int64_t rows : {1, 4, 256, 257})
    CHECK(constants(rows) == std::vector<std::string>{"wide.packed"});
}

// Products and convolutions of these weights, some of which two nodes read.
onnx::ModelProto Halves(onnx::TensorProto::DataType dtype) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 64, 6, 6});
  SetValue(graph->add_output(), "y", {});
  const auto weight = [&](const std::string& name, const Ints& dims) {
    std::string raw;
    const std::int64_t count =
        std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint16_t bits = static_cast<std::uint16_t>(0x3800 + i * 37 % 1024);
      raw.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    }
    AddWeight(graph, name, dtype, dims)->set_raw_data(raw);
  };
  weight("shared", {64, 64, 3, 3});
  weight("pixel", {48, 64, 1, 1});
  weight("w", {48, 400});
  AddInt(AddNode(graph, "Cast", {"x"}, "half"), "to", dtype);
  for (const char* name : {"a", "b"}) {
    AddIntList(AddNode(graph, "Conv", {name[0] == 'a' ? "half" : "a", "shared"}, name), "pads", {1, 1, 1, 1});
  }
  AddNode(graph, "Conv", {"b", "pixel"}, "c");
  AddIntList(AddNode(graph, "Transpose", {"c"}, "tokens"), "perm", {0, 2, 3, 1});
  AddNode(graph, "MatMul", {"tokens", "w"}, "product");
  AddInt(AddNode(graph, "Cast", {"product"}, "y"), "to", onnx::TensorProto::FLOAT);
  return model;
}

TEST_CASE("compute-at-load: a model of 16 bits makes a file that is as large, with each weight once") {
  for (const auto dtype : {onnx::TensorProto::FLOAT16, onnx::TensorProto::BFLOAT16}) {
    const onnx::ModelProto model = Halves(dtype);
    const std::size_t bytes = model.ByteSizeLong();
    compiler::CompileOptions options;
    options.disabled_passes = {"compute-at-load"};
    Outcome given = CompileProto(model), as_floats = CompileProto(model, options);
    INFO(given.message);
    REQUIRE(given.message.empty());
    std::size_t stored = 0;
    for (const Constant& constant : given.compiled.module.constants) {
      if (constant.kind != ConstantKind::kData || constant.raw_bytes < 256) continue;
      CHECK(constant.type.dtype.bits == 16);
      ++stored;
    }
    CHECK(stored == 3);
    const Result<std::vector<std::byte>> file = SerializeModule(given.compiled.module);
    REQUIRE(file);
    CHECK(static_cast<double>(file->size()) <= 1.05 * static_cast<double>(bytes));
    CHECK(RunOnCounts(given.compiled.module, {1, 64, 6, 6}).values ==
          RunOnCounts(as_floats.compiled.module, {1, 64, 6, 6}).values);
  }
}

// A convolution of one position by f16, with a batch normalization whose factors are `scale`.
onnx::ModelProto Normalized(float scale) {
  onnx::ModelProto model = ModelOf({1, 32, 4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* weights = AddWeight(graph, "w", onnx::TensorProto::FLOAT16, {64, 32, 1, 1});
  for (int i = 0; i < 64 * 32; ++i) weights->add_int32_data(0x3800 + i * 37 % 1024);
  AddInt(AddNode(graph, "Cast", {"w"}, "wide"), "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Conv", {"x", "wide"}, "conv");
  AddFloats(graph, "scale", {64}, std::vector<float>(64, scale));
  AddFloats(graph, "shift", {64}, std::vector<float>(64, 0.25F));
  AddFloats(graph, "mean", {64}, std::vector<float>(64, 0.5F));
  AddFloats(graph, "variance", {64}, std::vector<float>(64, 1.0F));
  AddNode(graph, "BatchNormalization", {"conv", "scale", "shift", "mean", "variance"}, "y");
  return model;
}

TEST_CASE("weights of f16 with a batch normalization in them stay f16 where that holds them") {
  const auto bits = [](float scale, bool strict) {
    compiler::CompileOptions options;
    options.strict = strict;
    const Outcome outcome = CompileProto(Normalized(scale), options);
    INFO(outcome.message);
    REQUIRE(outcome.message.empty());
    for (const Constant& constant : outcome.compiled.module.constants) {
      if (constant.type.rank == 2 && constant.raw_bytes > 2048) return int{constant.type.dtype.bits};
    }
    return 0;
  };
  CHECK(bits(1.7F, false) == 16);
  CHECK(bits(1e6F, false) == 32);   // beyond the largest f16
  CHECK(bits(1e-5F, false) == 32);  // where f16 has few bits
  // The same model in f32 is as near as rounding to f16 allows.
  Outcome halves = CompileProto(Normalized(1.7F));
  compiler::CompileOptions exact;
  exact.disabled_passes = {"fold-affine"};
  Outcome floats = CompileProto(Normalized(1.7F), exact);
  const std::vector<float> given = RunOnCounts(halves.compiled.module, {1, 32, 4, 4}).values;
  const std::vector<float> expected = RunOnCounts(floats.compiled.module, {1, 32, 4, 4}).values;
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    CHECK(std::fabs(given[i] - expected[i]) <= 0x1p-10F * std::fabs(expected[i]));
}

}  // namespace
}  // namespace rewire::test
