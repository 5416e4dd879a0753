// SPDX-License-Identifier: Apache-2.0
// Random graphs that join, cut, view and overwrite tensors: their memory plan changes no bit of any output,
// and a run takes what the bound says.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "tests/compiler/model_builder.h"
#include "vm/vm.h"

namespace rewire::test {
namespace {

// f32[rows, 16] throughout.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed), model_(EmptyModel()), graph_(*model_.mutable_graph()) {
    rows_["x"] = 1 + static_cast<std::int64_t>(Below(6));
    names_.emplace_back("x");
    SetValue(graph_.add_input(), "x", {rows_["x"], 16});
    AddFloats(&graph_, "w", {16, 16}, std::vector<float>(256, 0.0625F));
    const std::size_t nodes = 6 + Below(20);
    for (std::size_t i = 0; i < nodes; ++i) AddRandomNode();
    for (const std::string& name : names_) {
      if (read_.contains(name) || outputs_ == 4) continue;
      ++outputs_;
      SetValue(graph_.add_output(), name, {});
    }
  }
  const onnx::ModelProto& model() const { return model_; }
  std::int64_t rows() const { return rows_.at("x"); }
  int outputs() const { return outputs_; }

 private:
  std::size_t Below(std::size_t limit) { return random_() % limit; }
  // One that was made lately, so that chains become long.
  std::string Pick() {
    const std::string& name = names_[names_.size() - 1 - Below(std::min<std::size_t>(names_.size(), 6))];
    read_.insert(name);
    return name;
  }
  std::string NewName(std::int64_t rows) {
    names_.push_back("v" + std::to_string(names_.size()));
    rows_[names_.back()] = rows;
    return names_.back();
  }
  std::string Ints(const std::vector<std::int64_t>& values) {
    std::string name = "i" + std::to_string(++constants_);
    AddInts(&graph_, name, values);
    return name;
  }

  void AddRandomNode() {
    const std::string from = Pick();
    const std::int64_t rows = rows_[from];
    switch (Below(7)) {
      case 0:
        AddNode(&graph_, Below(2) == 0 ? "Neg" : "Tanh", {from}, NewName(rows));
        return;
      case 1: {
        std::string other = Pick();
        if (rows_[other] != rows) other = from;
        AddNode(&graph_, "Add", {from, other}, NewName(rows));
        return;
      }
      case 2:
        AddNode(&graph_, "MatMul", {from, "w"}, NewName(rows));
        return;
      case 3: {
        std::vector<std::string> parts = {from};
        std::int64_t sum = rows;
        for (std::size_t i = 0; i <= Below(3); ++i) {
          parts.push_back(Pick());
          sum += rows_[parts.back()];
        }
        if (sum <= 64) AddInt(AddNode(&graph_, "Concat", parts, NewName(sum)), "axis", 0);
        return;
      }
      case 4: {
        if (rows == 1) return;
        const auto cut = static_cast<std::int64_t>(1 + Below(static_cast<std::size_t>(rows - 1)));
        const std::string first = NewName(cut);
        onnx::NodeProto* split = AddNode(&graph_, "Split", {from, Ints({cut, rows - cut})}, first);
        split->add_output(NewName(rows - cut));
        AddInt(split, "axis", 0);
        return;
      }
      case 5: {
        const auto begin = static_cast<std::int64_t>(Below(static_cast<std::size_t>(rows)));
        const std::int64_t end =
            begin + 1 + static_cast<std::int64_t>(Below(static_cast<std::size_t>(rows - begin)));
        AddNode(&graph_, "Slice", {from, Ints({begin}), Ints({end}), Ints({0})}, NewName(end - begin));
        return;
      }
      default: {
        AddNode(&graph_, "Reshape", {from, Ints({16 * rows})}, from + ".flat" + std::to_string(++constants_));
        const std::string flat = graph_.node(graph_.node_size() - 1).output(0);
        AddNode(&graph_, "Reshape", {flat, Ints({rows, 16})}, NewName(rows));
      }
    }
  }

  std::mt19937 random_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_;
  std::vector<std::string> names_;
  std::map<std::string, std::int64_t> rows_;
  std::set<std::string> read_;
  int constants_ = 0;
  int outputs_ = 0;
};

std::vector<std::vector<float>> Outputs(compiler::Compiled compiled, const RandomGraph& graph) {
  const Result<Executable> executable = Executable::FromModule(std::move(compiled.module));
  REQUIRE(executable);
  LinkOptions link;
  link.storage_fill = StorageFill::kPoison;
  const Result<Program> poisoned = Program::Link(*executable, link);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(poisoned);
  REQUIRE(program);
  std::vector<float> x(static_cast<std::size_t>(graph.rows()) * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 29) * 0.125F - 1.5F;
  const Shape shape = {graph.rows(), 16};
  const Result<MemoryBound> bound = program->TryMemoryBound();
  REQUIRE(bound);
  VirtualMachine measured(*program);
  REQUIRE(measured.TrySetInput("x", TensorView(x.data(), DTypeOf<float>(), shape)));
  REQUIRE(measured.TryInvoke());
  CHECK(measured.bytes_peak() == bound->bytes);

  VirtualMachine vm(*poisoned);
  REQUIRE(vm.TrySetInput("x", TensorView(x.data(), DTypeOf<float>(), shape)));
  const Status done = vm.TryInvoke();
  INFO((done ? "" : done.error().message()));
  REQUIRE(done);
  std::vector<std::vector<float>> outputs;
  for (int i = 0; i < graph.outputs(); ++i) {
    const Value& result = vm.result();
    const Tensor output =
        graph.outputs() == 1 ? result.tensor() : result.field(static_cast<std::uint32_t>(i)).tensor();
    outputs.emplace_back(output.data<float>(), output.data<float>() + output.view().size());
  }
  return outputs;
}

TEST_CASE("no memory plan changes what random graphs compute") {
  std::size_t arenas = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed);
    if (graph.outputs() == 0) continue;
    Outcome planned = CompileProto(graph.model());
    compiler::CompileOptions options;
    options.disabled_passes = {"in-place", "arena"};
    Outcome plain = CompileProto(graph.model(), options);
    REQUIRE(planned.message.empty());
    REQUIRE(plain.message.empty());
    arenas += planned.compiled.arena_bytes > 0 ? 1 : 0;
    CHECK(planned.compiled.arena_bytes <= planned.compiled.separate_bytes);
    CHECK(Outputs(std::move(planned.compiled), graph) == Outputs(std::move(plain.compiled), graph));
  }
  CHECK(arenas > 20);
}

}  // namespace
}  // namespace rewire::test
