// SPDX-License-Identifier: Apache-2.0
// Random graphs on ranks give what one process gives.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/shard/layers.h"

namespace rewire::test {
namespace {

// A chain of random operators over tensors [1, 4, width], with values of earlier steps taken up again.
class RandomModel {
 public:
  explicit RandomModel(std::uint64_t seed) : model_(EmptyModel(17)), add_(&model_, seed) {
    SetValue(model_.mutable_graph()->add_input(), "x", {1, 4, 16});
    values_.push_back({"x", 16});
    const std::int64_t steps = 4 + add_.random().Below(8);
    for (std::int64_t i = 0; i < steps; ++i) Step();
    // All values that nothing reads yet count in the result.
    std::string sum;
    for (const Known& value : values_) {
      const std::string name = Fresh();
      add_.Linear(value.name, value.width, 8, name);
      sum = sum.empty() ? name : add_.Add(sum, name, Fresh());
    }
    add_.Node("Identity", {sum}, "y");
    SetValue(model_.mutable_graph()->add_output(), "y", {1, 4, 8});
  }

  const onnx::ModelProto& model() const { return model_; }

 private:
  struct Known {
    std::string name;
    std::int64_t width;
  };

  std::string Fresh() { return "v" + std::to_string(next_++); }
  Known Any() {
    return values_[static_cast<std::size_t>(add_.random().Below(static_cast<std::int64_t>(values_.size())))];
  }
  // The latest value more often, so that chains become long.
  Known Recent() { return add_.random().Below(3) == 0 ? Any() : values_.back(); }

  void Step() {
    const Known x = Recent();
    const std::string y = Fresh();
    const auto keep = [&](std::int64_t width) { values_.push_back({y, width}); };
    switch (add_.random().Below(12)) {
      case 0:
      case 1:
      case 2: {
        const std::int64_t width = 4 * (1 + add_.random().Below(8));
        add_.Linear(x.name, x.width, width, y, add_.random().Below(2) == 0);
        return keep(width);
      }
      case 3:
        add_.Node(add_.random().Below(2) == 0 ? "Tanh" : "Sigmoid", {x.name}, y);
        return keep(x.width);
      case 4:
        add_.Node("Mul", {x.name, add_.Linear(x.name, x.width, x.width, Fresh())}, y);
        return keep(x.width);
      case 5:
        AddInt(add_.Node("Softmax", {x.name}, y), "axis", add_.random().Below(2) == 0 ? -1 : 1);
        return keep(x.width);
      case 6:
        add_.Norm(x.name, x.width, y);
        return keep(x.width);
      case 7: {
        // Heads, turned and turned back.
        const std::int64_t heads = x.width % 4 == 0 ? 4 : 1, size = x.width / heads;
        const std::string apart = add_.Heads(x.name, heads, size, Fresh());
        AddInt(add_.Node("Softmax", {apart}, y + ".soft"), "axis", -1);
        add_.Reshape(add_.Transpose(y + ".soft", {0, 2, 1, 3}, Fresh()), {0, 0, x.width}, y);
        return keep(x.width);
      }
      case 8: {
        const std::int64_t heads = 2 + 2 * add_.random().Below(2), size = 4;
        std::vector<std::string> sides;
        for (int i = 0; i < 3; ++i)
          sides.push_back(
              add_.Heads(add_.Linear(x.name, x.width, heads * size, Fresh()), heads, size, Fresh()));
        add_.Attend(sides[0], sides[1], sides[2], heads, size, y);
        return keep(heads * size);
      }
      case 9: {
        // Two halves of a product, of which one gates the other.
        const std::string both = add_.Linear(x.name, x.width, 16, Fresh());
        AddInts(model_.mutable_graph(), y + ".halves", {8, 8});
        onnx::NodeProto* split = add_.Node("Split", {both, y + ".halves"}, y + ".a");
        split->add_output(y + ".b");
        AddInt(split, "axis", 2);
        add_.Node("Mul", {y + ".a", y + ".b"}, y);
        return keep(8);
      }
      case 10: {
        const Known other = Any();
        AddInt(add_.Node("Concat", {x.name, other.name}, y), "axis", 2);
        return keep(x.width + other.width);
      }
      default: {
        AddInts(model_.mutable_graph(), y + ".axes", {2});
        AddInt(add_.Node("ReduceSum", {x.name, y + ".axes"}, y + ".sum"), "keepdims", 1);
        add_.Add(x.name, y + ".sum", y);
        return keep(x.width);
      }
    }
  }

  onnx::ModelProto model_;
  Layers add_;
  std::vector<Known> values_;
  int next_ = 0;
};

TEST_CASE("random graphs on ranks and in stages give what one process gives") {
  std::size_t split = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const RandomModel random(seed);
    const std::int64_t ranks = seed % 2 == 0 ? 2 : 4;
    RandomNumbers numbers(seed);
    const NamedTensors inputs = {{"x", RandomTensor(&numbers, {1, 4, 16})}};
    const RankResult whole = RunWhole(random.model(), inputs);
    INFO("seed " << seed << ": " << whole.error);
    REQUIRE(whole.error.empty());
    for (const bool stages : {false, true}) {
      const ShardedModel sharded =
          stages ? CompileShards(random.model(), 1, 2) : CompileShards(random.model(), ranks);
      INFO((stages ? "stages" : "shards") << ": " << sharded.error);
      REQUIRE(sharded.error.empty());
      std::vector<NamedTensors> of_ranks;
      for (const compiler::Compiled& compiled : sharded.compiled)
        of_ranks.push_back(compiled.module.functions[0].inputs.size() == 1 ? inputs : NamedTensors());
      split += sharded.compiled[0].shards.split_bytes > 0 ? 1 : 0;
      std::size_t outputs = 0;
      for (const RankResult& result : RunRanks(sharded.executables, of_ranks)) {
        INFO(result.error);
        REQUIRE(result.error.empty());
        for (const auto& [name, tensor] : result.outputs) {
          ++outputs;
          const double most = stages ? 0 : 2e-3;
          CHECK(Difference(tensor, whole.outputs.at(name)) <= most);
        }
      }
      CHECK(outputs == (stages ? 1 : static_cast<std::size_t>(ranks)));
    }
  }
  // Nearly all of them have something to split.
  CHECK(split >= 25);
}

}  // namespace
}  // namespace rewire::test
