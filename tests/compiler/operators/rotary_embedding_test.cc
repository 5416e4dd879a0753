// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding of ONNX and of com.microsoft: shapes known, partly open and all open, against rotations of
// single elements.
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kBatch = 2, kHeads = 3, kLength = 4, kSize = 8, kPositions = 9;

enum class Open { kNothing, kLengths, kEverything };

struct RotaryCase {
  bool microsoft = false;
  bool joined = false;  // x is [batch, length, heads * size]
  bool interleaved = false;
  bool part = false;       // half of each head is turned
  bool says_heads = true;  // num_heads is given
  bool one_position = false;
  Open open = Open::kNothing;

  std::int64_t turned() const { return part ? kSize / 2 : kSize; }
};

std::vector<float> Drawn(std::int64_t count, float by) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<float>(i) * by));
  return values;
}

// The tensors of a call.
struct Data {
  explicit Data(const RotaryCase& is)
      : x(Drawn(kBatch * kHeads * kLength * kSize, 0.7F)),
        cosines(Drawn(kPositions * is.turned() / 2, 1.3F)),
        sines(Drawn(kPositions * is.turned() / 2, 2.1F)),
        positions({0, 1, 2, 3, 8, 5, 7, 6}) {
    if (is.one_position) positions = {4};
  }
  std::int64_t PositionOf(std::int64_t batch, std::int64_t place) const {
    return positions.size() == 1 ? positions[0] + place
                                 : positions[static_cast<std::size_t>(batch * kLength + place)];
  }
  std::vector<float> x, cosines, sines;
  std::vector<std::int64_t> positions;
};

std::size_t PlaceOf(const RotaryCase& is, std::int64_t batch, std::int64_t head, std::int64_t place,
                    std::int64_t i) {
  const std::int64_t row =
      is.joined ? (batch * kLength + place) * kHeads + head : (batch * kHeads + head) * kLength + place;
  return static_cast<std::size_t>(row * kSize + i);
}

std::vector<float> Expected(const RotaryCase& is, const Data& data) {
  std::vector<float> y = data.x;
  const std::int64_t half = is.turned() / 2;
  for (std::int64_t row = 0; row < kBatch * kHeads * kLength; ++row) {
    const std::int64_t batch = row / (kHeads * kLength), head = row / kLength % kHeads, place = row % kLength;
    for (std::int64_t i = 0; i < half; ++i) {
      const auto at = static_cast<std::size_t>(data.PositionOf(batch, place) * half + i);
      const std::size_t a = PlaceOf(is, batch, head, place, is.interleaved ? 2 * i : i);
      const std::size_t b = PlaceOf(is, batch, head, place, is.interleaved ? 2 * i + 1 : half + i);
      y[a] = data.x[a] * data.cosines[at] - data.x[b] * data.sines[at];
      y[b] = data.x[a] * data.sines[at] + data.x[b] * data.cosines[at];
    }
  }
  return y;
}

// `open` dimensions have names of their own, so that nothing follows from one input for another.
std::vector<Dim> DeclaredDims(const Shape& shape, Open open, const std::vector<const char*>& names,
                              std::size_t lengths) {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool named = open == Open::kEverything || (open == Open::kLengths && i < lengths);
    dims.push_back(named ? Dim(names[i]) : Dim(shape[i]));
  }
  return dims;
}

Answer Run(const RotaryCase& is, Data& data, std::optional<Shape> table_shape = std::nullopt) {
  onnx::ModelProto model = EmptyModel(23);
  onnx::OperatorSetIdProto* set = model.add_opset_import();
  set->set_domain("com.microsoft");
  set->set_version(1);
  onnx::GraphProto* graph = model.mutable_graph();
  const Shape x = is.joined ? Shape{kBatch, kLength, kHeads * kSize} : Shape{kBatch, kHeads, kLength, kSize};
  const Shape table = table_shape.value_or(Shape{kPositions, is.turned() / 2});
  const Shape positions = is.one_position ? Shape{1} : Shape{kBatch, kLength};
  SetValue(graph->add_input(), "x", DeclaredDims(x, is.open, {"x0", "x1", "x2", "x3"}, is.joined ? 2 : 3));
  SetValue(graph->add_input(), "positions",
           DeclaredDims(positions, is.one_position ? Open::kNothing : is.open, {"p0", "p1"}, 2),
           onnx::TensorProto::INT64);
  for (const char* name : {"cosines", "sines"})
    SetValue(graph->add_input(), name, DeclaredDims(table, is.open, {"t0", "t1"}, 1));
  const std::vector<std::string> inputs =
      is.microsoft ? std::vector<std::string>{"x", "positions", "cosines", "sines"}
                   : std::vector<std::string>{"x", "cosines", "sines", "positions"};
  onnx::NodeProto* node = AddNode(graph, "RotaryEmbedding", inputs, "y");
  if (is.microsoft) node->set_domain("com.microsoft");
  if (is.interleaved) AddInt(node, "interleaved", 1);
  if (is.part) AddInt(node, "rotary_embedding_dim", is.turned());
  if (is.says_heads) AddInt(node, "num_heads", kHeads);
  SetValue(graph->add_output(), "y", {});
  graph->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  const Outcome outcome = CompileProto(model);
  INFO(outcome.message << (outcome.unsupported.empty() ? "" : ": " + outcome.unsupported[0].reason));
  REQUIRE(outcome.message.empty());
  return RunOn(outcome.compiled.module, {{"x", TensorView(data.x.data(), kFloat32, x)},
                                         {"positions", TensorView(data.positions.data(), kInt64, positions)},
                                         {"cosines", TensorView(data.cosines.data(), kFloat32, table)},
                                         {"sines", TensorView(data.sines.data(), kFloat32, table)}});
}

TEST_CASE("RotaryEmbedding turns the same elements whatever is known of the shapes") {
  for (unsigned form = 0; form < 64; ++form) {
    for (const Open open : {Open::kNothing, Open::kLengths, Open::kEverything}) {
      RotaryCase is{(form & 1) != 0,
                    (form & 2) != 0,
                    (form & 4) != 0,
                    (form & 8) != 0,
                    (form & 16) != 0,
                    (form & 32) != 0,
                    open};
      // Heads must be said where a part is turned, and to ONNX's operator where they are joined.
      if (!is.says_heads && (is.part || (is.joined && !is.microsoft))) continue;
      if (is.one_position && !is.microsoft) continue;
      INFO("form " << form << ", open " << static_cast<int>(open));
      Data data(is);
      const Answer answer = Run(is, data);
      REQUIRE(answer.error.empty());
      const std::vector<float> expected = Expected(is, data);
      REQUIRE(answer.values.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        REQUIRE(answer.values[i] == Approx(expected[i]).margin(1e-5));
    }
  }
}

TEST_CASE("tables of another size than the part that is turned fail the run") {
  for (const bool microsoft : {false, true}) {
    RotaryCase is{microsoft, false, false, true, true, false, Open::kEverything};
    Data data(is);
    data.cosines = data.sines = Drawn(kPositions * 3, 1);
    CHECK_THAT(Run(is, data, Shape{kPositions, 3}).error, Catch::Contains("reshape"));
  }
}

}  // namespace
}  // namespace rewire::test
