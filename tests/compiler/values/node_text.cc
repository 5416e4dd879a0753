// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/values/node_text.h"

#include <bit>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "rewire/vm/loader/ffi_shim/half.h"

namespace rewire::test {
namespace {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool Take(char wanted) {
    SkipSpaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void Expect(char wanted) {
    INFO("'" << text_ << "' at " << at_ << ": expected " << wanted);
    REQUIRE(Take(wanted));
  }
  bool AtEnd() {
    SkipSpaces();
    return at_ == text_.size();
  }
  // Up to a character that ends a word.
  std::string Word() {
    SkipSpaces();
    const std::size_t end = std::min(text_.find_first_of(" ,()[]<>=", at_), text_.size());
    std::string word(text_.substr(at_, end - at_));
    at_ = end;
    return word;
  }
  std::string Quoted() {
    const std::size_t end = std::min(text_.find('"', at_), text_.size());
    std::string word(text_.substr(at_, end - at_));
    at_ = std::min(end + 1, text_.size());
    return word;
  }

 private:
  void SkipSpaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

bool IsFloatText(const std::string& word) { return word.find_first_of(".naN") != std::string::npos; }

std::int64_t IntOf(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  INFO("'" << word << "' as an integer");
  REQUIRE((error == std::errc() && end == word.data() + word.size()));
  return value;
}

double NumberOf(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  INFO("'" << word << "' as a number");
  REQUIRE((!word.empty() && *end == 0));
  return value;
}

void ReadAttribute(Cursor* cursor, onnx::AttributeProto* attribute) {
  if (cursor->Take('"')) {
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s(cursor->Quoted());
    return;
  }
  if (!cursor->Take('[')) {
    const std::string word = cursor->Word();
    attribute->set_type(IsFloatText(word) ? onnx::AttributeProto::FLOAT : onnx::AttributeProto::INT);
    if (IsFloatText(word))
      attribute->set_f(static_cast<float>(NumberOf(word)));
    else
      attribute->set_i(IntOf(word));
    return;
  }
  attribute->set_type(onnx::AttributeProto::INTS);
  while (!cursor->Take(']')) {
    if (cursor->Take('"')) {
      attribute->set_type(onnx::AttributeProto::STRINGS);
      attribute->add_strings(cursor->Quoted());
      cursor->Take(',');
      continue;
    }
    const std::string word = cursor->Word();
    if (IsFloatText(word)) {
      attribute->set_type(onnx::AttributeProto::FLOATS);
      attribute->add_floats(static_cast<float>(NumberOf(word)));
    } else {
      attribute->add_ints(IntOf(word));
    }
    cursor->Take(',');
  }
}

struct NamedType {
  onnx::TensorProto::DataType type;
  int bytes;
};

NamedType TypeOf(const std::string& name) {
  using Proto = onnx::TensorProto;
  static const std::map<std::string, NamedType> kTypes = {
      {"f16", {Proto::FLOAT16, 2}}, {"bf16", {Proto::BFLOAT16, 2}}, {"f32", {Proto::FLOAT, 4}},
      {"f64", {Proto::DOUBLE, 8}},  {"i8", {Proto::INT8, 1}},       {"i16", {Proto::INT16, 2}},
      {"i32", {Proto::INT32, 4}},   {"i64", {Proto::INT64, 8}},     {"u8", {Proto::UINT8, 1}},
      {"u16", {Proto::UINT16, 2}},  {"u32", {Proto::UINT32, 4}},    {"u64", {Proto::UINT64, 8}},
      {"bool", {Proto::BOOL, 1}}};
  const auto found = kTypes.find(name);
  INFO("dtype '" << name << "'");
  REQUIRE(found != kTypes.end());
  return found->second;
}

// The low bytes of an element, little-endian.
std::uint64_t BitsOf(const NamedType& type, const std::string& word) {
  switch (type.type) {
    case onnx::TensorProto::FLOAT16:
      return ffi_shim::FloatToHalf(static_cast<float>(NumberOf(word)));
    case onnx::TensorProto::BFLOAT16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(NumberOf(word))) >> 16;
    case onnx::TensorProto::FLOAT:
      return std::bit_cast<std::uint32_t>(static_cast<float>(NumberOf(word)));
    case onnx::TensorProto::DOUBLE:
      return std::bit_cast<std::uint64_t>(NumberOf(word));
    case onnx::TensorProto::UINT64:
      return std::strtoull(word.c_str(), nullptr, 10);
    default:
      return static_cast<std::uint64_t>(IntOf(word));
  }
}

}  // namespace

onnx::NodeProto* AddNodeText(onnx::GraphProto* graph, std::string_view text) {
  Cursor cursor(text);
  onnx::NodeProto* node = graph->add_node();
  do {
    node->add_output(cursor.Word());
  } while (cursor.Take(','));
  cursor.Expect('=');
  const std::string type = cursor.Word();
  const std::size_t dot = type.rfind('.');
  node->set_op_type(dot == std::string::npos ? type : type.substr(dot + 1));
  if (dot != std::string::npos) node->set_domain(type.substr(0, dot));
  cursor.Expect('(');
  while (!cursor.Take(')')) {
    if (cursor.Take('"')) {
      node->add_input(cursor.Quoted());
    } else {
      node->add_input(cursor.Word());
    }
    cursor.Take(',');
  }
  if (!cursor.Take('<')) return node;
  while (!cursor.Take('>')) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(cursor.Word());
    cursor.Expect('=');
    ReadAttribute(&cursor, attribute);
    cursor.Take(',');
  }
  return node;
}

onnx::TensorProto TensorOfText(std::string_view text) {
  Cursor cursor(text);
  const NamedType type = TypeOf(cursor.Word());
  onnx::TensorProto tensor;
  tensor.set_data_type(type.type);
  std::int64_t count = 1;
  cursor.Expect('[');
  while (!cursor.Take(']')) {
    tensor.add_dims(IntOf(cursor.Word()));
    count *= tensor.dims(tensor.dims_size() - 1);
    cursor.Take(',');
  }
  cursor.Expect('=');
  std::vector<std::uint64_t> elements;
  while (!cursor.AtEnd()) elements.push_back(BitsOf(type, cursor.Word()));
  if (elements.size() == 1) elements.resize(static_cast<std::size_t>(count), elements[0]);
  INFO("'" << text << "': " << elements.size() << " elements, expected " << count);
  REQUIRE(static_cast<std::int64_t>(elements.size()) == count);
  for (const std::uint64_t element : elements)
    tensor.mutable_raw_data()->append(reinterpret_cast<const char*>(&element),
                                      static_cast<std::size_t>(type.bytes));
  return tensor;
}

}  // namespace rewire::test
