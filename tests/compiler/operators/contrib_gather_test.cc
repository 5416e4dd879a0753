// SPDX-License-Identifier: Apache-2.0
// com.microsoft's GatherBlockQuantized in all its forms, against codes that are looked up one by one.
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

std::int64_t CountOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// The content of a table before it is packed.
struct Codes {
  Shape shape;
  std::vector<int> elements;

  int At(const Shape& place) const {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + place[i];
    return elements[static_cast<std::size_t>(at)];
  }
};

Codes MakeCodes(const Shape& shape, int first, int count, int step) {
  Codes codes{shape, {}};
  for (std::int64_t i = 0; i < CountOf(shape); ++i) {
    codes.elements.push_back(first + static_cast<int>((i * step + i / 7) % count));
  }
  return codes;
}

enum class Form { kInt4, kUInt4, kPacked2, kPacked4, kPacked8 };

int BitsOf(Form form) { return form == Form::kPacked8 ? 8 : form == Form::kPacked2 ? 2 : 4; }
bool IsPacked(Form form) { return form != Form::kInt4 && form != Form::kUInt4; }

// Rows of bytes for packed tables; tensors of 4 bits are packed as a whole.
void AddCodes(onnx::GraphProto* graph, const std::string& name, const Codes& codes, Form form) {
  const int bits = BitsOf(form), per_byte = 8 / bits;
  const std::int64_t row = IsPacked(form) ? codes.shape.back() : CountOf(codes.shape);
  Shape shape = codes.shape;
  if (IsPacked(form)) shape.back() = (row + per_byte - 1) / per_byte;
  std::string bytes;
  for (std::int64_t begin = 0; begin < CountOf(codes.shape); begin += row) {
    for (std::int64_t i = 0; i < row; i += per_byte) {
      int byte = 0;
      for (int k = 0; k < per_byte && i + k < row; ++k) {
        byte |= (codes.elements[static_cast<std::size_t>(begin + i + k)] & ((1 << bits) - 1)) << (k * bits);
      }
      bytes.push_back(static_cast<char>(byte));
    }
  }
  // The classes that this is built with may be older than the types of 4 bits: 21 and 22.
  const int type = form == Form::kInt4 ? 22 : form == Form::kUInt4 ? 21 : onnx::TensorProto::UINT8;
  onnx::TensorProto* tensor = AddWeight(graph, name, onnx::TensorProto::UINT8, shape);
  tensor->set_data_type(type);
  tensor->set_raw_data(bytes);
}

struct GatherCase {
  Form form = Form::kPacked4;
  Shape shape = {5, 48};
  int gather_axis = 0, quantize_axis = 1;
  bool zeros = false;
  Shape indices = {3};
  bool knows_indices = false;
};

// Compares one model with its codes. The indices count up from the last row, which is -1, and so on.
void Check(const GatherCase& is) {
  constexpr std::int64_t kBlock = 16;
  const int bits = BitsOf(is.form), first = is.form == Form::kInt4 ? -8 : 0;
  const std::size_t gather = static_cast<std::size_t>(is.gather_axis),
                    along = static_cast<std::size_t>(is.quantize_axis);
  Shape blocks = is.shape;
  blocks[along] = (blocks[along] + kBlock - 1) / kBlock;
  const Codes codes = MakeCodes(is.shape, first, 1 << bits, 5),
              zeros = MakeCodes(blocks, first, 1 << bits, 3);
  // A model that says how many indices there are shows that they are at least as many as the rows.
  std::vector<Dim> dims;
  for (const std::int64_t count : is.indices) dims.push_back(is.knows_indices ? Dim(count) : Dim(""));
  OneOutput model(21, dims);
  onnx::OperatorSetIdProto* set = model.model()->add_opset_import();
  set->set_domain("com.microsoft");
  set->set_version(1);
  onnx::GraphProto* graph = model.graph();
  AddCodes(graph, "table", codes, is.form);
  std::vector<float> scales;
  for (std::int64_t i = 0; i < CountOf(blocks); ++i) scales.push_back(static_cast<float>(i % 9 + 1) * 0.25F);
  AddFloats(graph, "scales", blocks, scales);
  if (is.zeros) AddCodes(graph, "zeros", zeros, is.form);
  AddFloats(graph, "one", {}, {1});
  AddNode(graph, "Sub", {"x", "one"}, "counted");
  AddFloats(graph, "rows", {}, {static_cast<float>(is.shape[gather])});
  AddInt(AddNode(graph, "Mod", {"counted", "rows"}, "from_last"), "fmod", 1);
  AddInt(AddNode(graph, "Cast", {"from_last"}, "indices"), "to", onnx::TensorProto::INT64);
  std::vector<std::string> inputs = {"table", "indices", "scales"};
  if (is.zeros) inputs.emplace_back("zeros");
  onnx::NodeProto* node = AddNode(graph, "GatherBlockQuantized", inputs, "y");
  node->set_domain("com.microsoft");
  AddInt(node, "block_size", kBlock);
  AddInt(node, "gather_axis", is.gather_axis);
  AddInt(node, "quantize_axis", is.quantize_axis - static_cast<int>(is.shape.size()));
  if (bits != 4) AddInt(node, "bits", bits);

  Shape result(is.shape.begin(), is.shape.begin() + is.gather_axis);
  result.insert(result.end(), is.indices.begin(), is.indices.end());
  result.insert(result.end(), is.shape.begin() + is.gather_axis + 1, is.shape.end());
  std::vector<float> expected;
  const std::int64_t rows = CountOf(is.indices),
                     inner = CountOf(Shape(is.shape.begin() + is.gather_axis + 1, is.shape.end()));
  for (std::int64_t i = 0; i < CountOf(result); ++i) {
    Shape place(is.shape.size());
    std::int64_t rest = i % inner, outer = i / inner / rows;
    for (std::size_t d = is.shape.size(); d-- > gather + 1;)
      place[d] = rest % is.shape[d], rest /= is.shape[d];
    place[gather] = (i / inner % rows - 1 + is.shape[gather]) % is.shape[gather];
    for (std::size_t d = gather; d-- > 0;) place[d] = outer % is.shape[d], outer /= is.shape[d];
    Shape block = place;
    block[along] /= kBlock;
    std::int64_t at = 0;
    for (std::size_t d = 0; d < block.size(); ++d) at = at * blocks[d] + block[d];
    const int zero = is.zeros ? zeros.At(block) : IsPacked(is.form) ? 1 << (bits - 1) : 0;
    expected.push_back(static_cast<float>(codes.At(place) - zero) * scales[static_cast<std::size_t>(at)]);
  }
  model.Expect(is.indices, result, expected);
}

TEST_CASE("rows of quantized tables, along any two axes") {
  for (const Form form : {Form::kInt4, Form::kUInt4}) {
    for (int gather = 0; gather < 3; ++gather) {
      for (int along = 0; along < 3; ++along) {
        for (const bool zeros : {false, true}) {
          Check({form, {32, 17, 20}, gather, along, zeros, {2, 2}});
          Check({form, {32, 17, 20}, gather, along, zeros, {}});
          Check({form, {5, 17, 3}, gather, along, zeros, {3, 6}, true});
        }
      }
    }
  }
}

TEST_CASE("rows of tables whose elements share bytes") {
  for (const Form form : {Form::kPacked2, Form::kPacked4, Form::kPacked8}) {
    for (const bool zeros : {false, true}) {
      Check({form, {5, 48}, 0, 1, zeros, {3}});
      Check({form, {5, 48}, 0, 1, zeros, {5, 2}, true});
      Check({form, {4, 2, 32}, 0, 2, zeros, {2, 1}});
      Check({form, {4, 16}, 0, 1, zeros, {}});  // one block: its zero fills half a byte
    }
  }
}

TEST_CASE("an index outside of the table fails the run") {
  OneOutput model(21, {1});
  onnx::OperatorSetIdProto* set = model.model()->add_opset_import();
  set->set_domain("com.microsoft");
  set->set_version(1);
  AddCodes(model.graph(), "table", MakeCodes({3, 16}, 0, 16, 5), Form::kUInt4);
  AddFloats(model.graph(), "scales", {3, 1}, {1, 1, 1});
  AddFloats(model.graph(), "nine", {}, {9});
  AddNode(model.graph(), "Add", {"x", "nine"}, "far");
  AddInt(AddNode(model.graph(), "Cast", {"far"}, "indices"), "to", onnx::TensorProto::INT64);
  onnx::NodeProto* node = AddNode(model.graph(), "GatherBlockQuantized", {"table", "indices", "scales"}, "y");
  node->set_domain("com.microsoft");
  AddInt(node, "block_size", 16);
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.message.empty());
  CHECK_THAT(RunOnCounts(outcome.compiled.module, {1}).error,
             Catch::Contains("[GatherBlockQuantized 'y']") && Catch::Contains("element 0 of indices is 9"));
}

TEST_CASE("forms that ONNX Runtime has not are refused") {
  const auto reason = [](Form form, const std::function<void(onnx::NodeProto*)>& change) {
    OneOutput model(21, {1});
    onnx::OperatorSetIdProto* set = model.model()->add_opset_import();
    set->set_domain("com.microsoft");
    set->set_version(1);
    AddCodes(model.graph(), "table", MakeCodes({3, 16}, 0, 4, 5), form);
    AddFloats(model.graph(), "scales", {3, 1}, {1, 1, 1});
    AddInt(AddNode(model.graph(), "Cast", {"x"}, "indices"), "to", onnx::TensorProto::INT64);
    onnx::NodeProto* node =
        AddNode(model.graph(), "GatherBlockQuantized", {"table", "indices", "scales"}, "y");
    node->set_domain("com.microsoft");
    change(node);
    const Outcome outcome = CompileProto(*model.model());
    return outcome.unsupported.empty() ? outcome.message : outcome.unsupported[0].reason;
  };
  CHECK(reason(Form::kUInt4, [](onnx::NodeProto* node) { AddInt(node, "block_size", 24); }) ==
        "block_size is 24, expected a power of two from 16 on");
  CHECK(reason(Form::kUInt4, [](onnx::NodeProto* node) { AddInt(node, "bits", 8); }) ==
        "bits is 8 for data of u4");
  CHECK(reason(Form::kPacked4, [](onnx::NodeProto* node) { AddInt(node, "gather_axis", 1); }) ==
        "packed data are gathered along axis 0 and quantized along the last; the axes are 1 and 1 of 2");
}

}  // namespace
}  // namespace rewire::test
