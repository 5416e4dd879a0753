// SPDX-License-Identifier: Apache-2.0
// Transposes in front of products of integers: the weights take them over where no element changes its row.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// Without pack-integers the product reads the weights as they are.
const std::vector<std::string> kPlain = {"permute-weights"}, kPacked = {"pack-integers", "permute-weights"};

std::int64_t CountOf(const Ints& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t Transposes(const Lines& lines) {
  const Lines kernels = KernelsOf(lines);
  return std::count(kernels.begin(), kernels.end(), "rewire.transpose");
}

void AddReshape(onnx::GraphProto* graph, const std::string& from, const std::string& to, const Ints& dims) {
  AddInts(graph, to + ".dims", dims);
  AddNode(graph, "Reshape", {from, to + ".dims"}, to);
}

// The product of bytes "from" with weights of this depth, as floats "y".
void AddProduct(onnx::GraphProto* graph, const std::string& from, std::int64_t depth) {
  AddWhole(graph, "w", {depth, 5}, kI8, -100, 27);
  AddNode(graph, "MatMulInteger", {from, "w", "xz"}, "sums");
  AddInt(AddNode(graph, "Cast", {"sums"}, "y"), "to", onnx::TensorProto::FLOAT);
}

// Gives, for each place of the output, the element of the input that lies there.
Ints Places(const Ints& dims, const Ints& perm, const Ints& from) {
  Ints steps(dims.size(), 1), at(dims.size(), 0), places;
  for (std::size_t axis = dims.size() - 1; axis-- > 0;) steps[axis] = steps[axis + 1] * dims[axis + 1];
  for (std::int64_t i = 0; i < CountOf(dims); ++i) {
    std::int64_t place = 0, rest = i;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      const auto of = static_cast<std::size_t>(perm[axis]);
      place += rest % dims[of] * steps[of];
      rest /= dims[of];
    }
    places.push_back(from[static_cast<std::size_t>(place)]);
  }
  return places;
}

// Whether all rows have their own elements, each row in the same order.
bool KeepsRows(const Ints& places, std::int64_t depth) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / depth * depth;
    if (places[i] - row < 0 || places[i] - row >= depth ||
        places[i] - row != places[i % static_cast<std::size_t>(depth)])
      return false;
  }
  return true;
}

TEST_CASE("permute-weights: of random transposes those go that keep rows apart, and results are equal") {
  int dropped = 0, kept = 0;
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](std::int64_t limit) { return static_cast<std::int64_t>(random()) % limit; };
    Ints dims;
    for (std::int64_t rank = 2 + draw(4); rank > 0; --rank) dims.push_back(1 + draw(4));
    Ints perm(dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin() + draw(2), perm.end(), random);
    const std::int64_t count = CountOf(dims);
    Ints divisors;
    for (std::int64_t i = 1; i <= count; ++i) {
      if (count % i == 0) divisors.push_back(i);
    }
    const std::int64_t depth =
        divisors[static_cast<std::size_t>(draw(static_cast<std::int64_t>(divisors.size())))];

    onnx::ModelProto model = Quantized({dims.begin(), dims.end()}, seed % 2 == 0 ? kU8 : kI8);
    onnx::GraphProto* graph = model.mutable_graph();
    AddIntList(AddNode(graph, "Transpose", {"xq"}, "moved"), "perm", perm);
    AddReshape(graph, "moved", "rows", {count / depth, depth});
    AddProduct(graph, "rows", depth);
    const bool drops = [&] {
      Ints places(static_cast<std::size_t>(count));
      std::iota(places.begin(), places.end(), 0);
      return KeepsRows(Places(dims, perm, places), depth);
    }();
    (drops ? dropped : kept) += 1;
    CHECK(Transposes(RunPasses(kPlain, model, Shape(dims.begin(), dims.end())).after) == (drops ? 0 : 1));
    CHECK(Transposes(RunPasses(kPacked, model, Shape(dims.begin(), dims.end())).after) == (drops ? 0 : 1));
  }
  CHECK(dropped > 10);
  CHECK(kept > 10);
}

TEST_CASE("permute-weights: chains of transposes, reshapes and nodes of single elements") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    onnx::ModelProto model = Quantized({2, 3, 4, 6});
    onnx::GraphProto* graph = model.mutable_graph();
    std::string at = "xq";
    int transposes = 0;
    Ints dims = {2, 3, 4, 6};
    for (std::uint32_t i = 0; i < 2 + seed % 3; ++i) {
      const std::string next = "value" + std::to_string(i);
      switch (random() % 3) {
        case 0: {
          Ints perm = {0, 1, 2, 3};
          while (std::is_sorted(perm.begin(), perm.end())) std::shuffle(perm.begin() + 1, perm.end(), random);
          AddIntList(AddNode(graph, "Transpose", {at}, next), "perm", perm);
          const Ints before = dims;
          for (std::size_t axis = 0; axis < 4; ++axis)
            dims[axis] = before[static_cast<std::size_t>(perm[axis])];
          ++transposes;
          break;
        }
        case 1:
          std::swap(dims[1], dims[3]);
          AddReshape(graph, at, next, dims);
          break;
        default:
          // Another quantization of each byte.
          AddNode(graph, "DequantizeLinear", {at, "xs", "xz"}, next + ".floats");
          AddNode(graph, "Neg", {next + ".floats"}, next + ".negative");
          AddNode(graph, "Relu", {next + ".negative"}, next + ".positive");
          AddNode(graph, "QuantizeLinear", {next + ".positive", "xs", "xz"}, next);
      }
      at = next;
    }
    AddReshape(graph, at, "rows", {2, 72});
    AddProduct(graph, "rows", 72);
    const PassRun run = RunPasses(seed % 2 == 0 ? kPlain : kPacked, model, {2, 3, 4, 6});
    CHECK(Transposes(run.before) == transposes);
    CHECK(Transposes(run.after) == 0);
  }
}

TEST_CASE("permute-weights: images in front of a layer, for any number of them") {
  onnx::ModelProto model = Quantized({"N", 3, 4, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddIntList(AddNode(graph, "Transpose", {"xq"}, "moved"), "perm", {0, 3, 1, 2});
  AddReshape(graph, "moved", "rows", {-1, 24});
  AddProduct(graph, "rows", 24);
  CHECK(Transposes(RunPasses(kPacked, model, {5, 3, 4, 2}).after) == 0);
}

TEST_CASE("permute-weights: what it leaves") {
  onnx::ModelProto model = Quantized({2, 3, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddIntList(AddNode(graph, "Transpose", {"xq"}, "moved"), "perm", {0, 2, 1});
  AddReshape(graph, "moved", "rows", {2, 12});
  const auto kept = [&] { return Transposes(RunPasses(kPacked, model, {2, 3, 4}).after) == 1; };
  SECTION("a transpose that something else reads") {
    AddProduct(graph, "rows", 12);
    graph->mutable_node(graph->node_size() - 1)->set_output(0, "product");
    AddNode(graph, "DequantizeLinear", {"moved", "xs", "xz"}, "floats");
    AddInts(graph, "axes", {1, 2});
    AddNode(graph, "ReduceMax", {"floats"}, "largest");
    AddNode(graph, "Add", {"product", "largest"}, "y");
    AddInt(graph->mutable_node(graph->node_size() - 2), "keepdims", 0);
    CHECK(kept());
  }
  SECTION("a scale for each channel in between") {
    AddFloats(graph, "scales", {4}, {1, 2, 3, 4});
    AddWhole(graph, "zeros", {4}, kU8, 0, 1);
    AddInt(AddNode(graph, "DequantizeLinear", {"moved", "scales", "zeros"}, "floats"), "axis", 1);
    AddNode(graph, "QuantizeLinear", {"floats", "xs", "xz"}, "again");
    graph->mutable_node(2)->set_input(0, "again");
    graph->mutable_node()->SwapElements(2, 4);
    graph->mutable_node()->SwapElements(2, 3);
    REQUIRE(graph->node(4).op_type() == "Reshape");
    AddProduct(graph, "rows", 12);
    CHECK(kept());
  }
  SECTION("weights that are computed") {
    AddNode(graph, "DequantizeLinear", {"rows", "xs", "xz"}, "floats");
    AddWhole(graph, "w", {12, 5}, kI8, -100, 27);
    AddNode(graph, "QuantizeLinear", {"floats", "xs", "xz"}, "rows2");
    AddIntList(AddNode(graph, "Transpose", {"rows2"}, "columns"), "perm", {1, 0});
    AddNode(graph, "MatMulInteger", {"rows2", "columns"}, "sums");
    AddInt(AddNode(graph, "Cast", {"sums"}, "y"), "to", onnx::TensorProto::FLOAT);
    CHECK(Transposes(RunPasses(kPacked, model, {2, 3, 4}).after) == 2);
  }
  SECTION("a product of floats, whose sums have an order") {
    AddNode(graph, "DequantizeLinear", {"rows", "xs", "xz"}, "floats");
    AddFloats(graph, "w", {12, 5}, Numbers(60));
    AddNode(graph, "MatMul", {"floats", "w"}, "y");
    CHECK(Transposes(RunPasses({"pack-products", "permute-weights"}, model, {2, 3, 4}).after) == 1);
  }
}

}  // namespace
}  // namespace rewire::test
