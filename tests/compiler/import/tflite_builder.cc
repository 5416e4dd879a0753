// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/import/tflite_builder.h"

#include <algorithm>
#include <functional>

namespace rewire::test {
namespace {

using Any = flatbuffers::Offset<void>;
using Anys = std::vector<Any>;

flatbuffers::voffset_t Place(int field) { return static_cast<flatbuffers::voffset_t>(4 + 2 * field); }

class Writer {
 public:
  explicit Writer(const std::vector<TfliteBuilder::Graph>& graphs) : graphs_(graphs) {}

  std::string Write(std::uint32_t version) {
    Anys graphs, codes, buffers;
    buffers.push_back(Table([] {}));
    for (const TfliteBuilder::Graph& graph : graphs_) graphs.push_back(SubGraph(graph, &buffers));
    for (const std::int32_t code : codes_) {
      codes.push_back(Table([&] {
        builder_.AddElement<std::int8_t>(Place(0), static_cast<std::int8_t>(std::min(code, 127)), 0);
        builder_.AddElement<std::int32_t>(Place(3), code, 0);
      }));
    }
    const auto of_codes = builder_.CreateVector(codes), of_graphs = builder_.CreateVector(graphs),
               of_buffers = builder_.CreateVector(buffers);
    const Any model = Table([&] {
      builder_.AddElement<std::uint32_t>(Place(0), version, 0);
      builder_.AddOffset(Place(1), of_codes);
      builder_.AddOffset(Place(2), of_graphs);
      builder_.AddOffset(Place(4), of_buffers);
    });
    builder_.Finish(model, "TFL3");
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  Any Table(const std::function<void()>& fields) {
    const flatbuffers::uoffset_t start = builder_.StartTable();
    fields();
    return Any(builder_.EndTable(start));
  }

  // Shapes of scalars are empty lists, and lists that a table lacks are missing.
  template <typename T>
  flatbuffers::Offset<flatbuffers::Vector<T>> List(const std::vector<T>& values, bool may_lack = true) {
    return values.empty() && may_lack ? flatbuffers::Offset<flatbuffers::Vector<T>>()
                                      : builder_.CreateVector(values);
  }

  Any SubGraph(const TfliteBuilder::Graph& graph, Anys* buffers) {
    Anys tensors, operators;
    for (const TfliteBuilder::TensorSpec& tensor : graph.tensors) tensors.push_back(Tensor(tensor, buffers));
    for (const TfliteBuilder::OperatorSpec& op : graph.operators) operators.push_back(Operator(op));
    const auto of_tensors = builder_.CreateVector(tensors), of_operators = builder_.CreateVector(operators);
    const auto inputs = List(graph.inputs), outputs = List(graph.outputs);
    return Table([&] {
      builder_.AddOffset(Place(0), of_tensors);
      builder_.AddOffset(Place(1), inputs);
      builder_.AddOffset(Place(2), outputs);
      builder_.AddOffset(Place(3), of_operators);
    });
  }

  Any Tensor(const TfliteBuilder::TensorSpec& tensor, Anys* buffers) {
    std::int32_t buffer = 0;
    if (!tensor.bytes.empty()) {
      builder_.ForceVectorAlignment(tensor.bytes.size(), 1, 16);
      const auto bytes = builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(tensor.bytes.data()),
                                               tensor.bytes.size());
      buffer = static_cast<std::int32_t>(buffers->size());
      buffers->push_back(Table([&] { builder_.AddOffset(Place(0), bytes); }));
    }
    if (tensor.buffer >= 0) buffer = tensor.buffer;
    const TfliteBuilder::Quantized& by = tensor.quantized;
    const auto scales = List(by.scales);
    const auto zeros = List(by.zeros);
    const Any quantized = Table([&] {
      builder_.AddOffset(Place(2), scales);
      builder_.AddOffset(Place(3), zeros);
      builder_.AddElement<std::uint8_t>(Place(4), by.details_type, 0);
      builder_.AddElement<std::int32_t>(Place(6), by.axis, 0);
    });
    const auto shape = List(tensor.shape, false), signature = List(tensor.shape_signature);
    const auto name = builder_.CreateString(tensor.name);
    return Table([&] {
      builder_.AddOffset(Place(0), shape);
      builder_.AddElement<std::int8_t>(Place(1), tensor.type, 0);
      builder_.AddElement<std::uint32_t>(Place(2), static_cast<std::uint32_t>(buffer), 0);
      builder_.AddOffset(Place(3), name);
      if (!by.scales.empty()) builder_.AddOffset(Place(4), quantized);
      builder_.AddOffset(Place(7), signature);
    });
  }

  Any Operator(const TfliteBuilder::OperatorSpec& op) {
    std::vector<flatbuffers::uoffset_t> lists(op.options.size());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (const auto* ints = std::get_if<TfliteBuilder::Ints>(&op.options[i].second))
        lists[i] = builder_.CreateVector(*ints).o;
      if (const auto* text = std::get_if<std::string>(&op.options[i].second))
        lists[i] = builder_.CreateString(*text).o;
    }
    const Any options = Table([&] {
      for (std::size_t i = 0; i < lists.size(); ++i) {
        const auto& [field, value] = op.options[i];
        const flatbuffers::voffset_t place = Place(field);
        if (const auto* byte = std::get_if<std::int8_t>(&value))
          builder_.AddElement(place, *byte, std::int8_t{0});
        if (const auto* number = std::get_if<std::int32_t>(&value)) builder_.AddElement(place, *number, 0);
        if (const auto* real = std::get_if<float>(&value)) builder_.AddElement(place, *real, 0.0F);
        if (lists[i] != 0) builder_.AddOffset(place, Any(lists[i]));
      }
    });
    auto code = std::find(codes_.begin(), codes_.end(), op.code);
    if (code == codes_.end()) code = codes_.insert(code, op.code);
    const auto index =
        op.opcode_index >= 0 ? op.opcode_index : static_cast<std::int32_t>(code - codes_.begin());
    const auto inputs = List(op.inputs), outputs = List(op.outputs);
    return Table([&] {
      builder_.AddElement<std::uint32_t>(Place(0), static_cast<std::uint32_t>(index), 0);
      builder_.AddOffset(Place(1), inputs);
      builder_.AddOffset(Place(2), outputs);
      builder_.AddElement<std::uint8_t>(Place(3), op.options_type, 0);
      if (op.options_type != 0) builder_.AddOffset(Place(4), options);
    });
  }

  const std::vector<TfliteBuilder::Graph>& graphs_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<std::int32_t> codes_;
};

}  // namespace

std::string TfliteBuilder::Write(const std::vector<Graph>& graphs, std::uint32_t version) {
  return Writer(graphs).Write(version);
}

}  // namespace rewire::test
