// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/case_data.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "rewire/compiler/import/model_file.h"
#include "rewire/compiler/import/tensor_data.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx-data.pb.h>
#pragma GCC diagnostic pop

namespace rewire::test {
namespace {

Result<Value> ToValue(const onnx::TensorProto& proto) {
  const Result<HostTensor> host = compiler::ReadTensorProto(proto, {}, nullptr);
  if (!host) return Forward(host);
  auto* data = const_cast<std::byte*>(host->bytes.view.data());
  Result<Tensor> tensor = Tensor::CopyOf(TensorView(data, host->dtype, host->shape));
  if (!tensor) return Forward(tensor);
  return Value(*std::move(tensor));
}

Result<Value> ToValue(const onnx::SequenceProto& proto);
Result<Value> ToValue(const onnx::OptionalProto& proto);

template <typename List>
Result<Value> ToAdt(const List& list) {
  std::vector<Value> fields;
  for (const auto& element : list) {
    Result<Value> field = ToValue(element);
    if (!field) return field;
    fields.push_back(*std::move(field));
  }
  return Value::Adt(0, fields);
}

Result<Value> ToValue(const onnx::SequenceProto& proto) {
  if (proto.elem_type() == onnx::SequenceProto::SEQUENCE) return ToAdt(proto.sequence_values());
  return ToAdt(proto.tensor_values());
}

template <typename Element>
Result<Value> Filled(const Element& element) {
  const Result<Value> field = ToValue(element);
  if (!field) return Forward(field);
  return Value::Adt(0, {*field});
}

Result<Value> ToValue(const onnx::OptionalProto& proto) {
  if (proto.has_tensor_value()) return Filled(proto.tensor_value());
  if (proto.has_sequence_value()) return Filled(proto.sequence_value());
  return Value::Adt(0, {});
}

template <typename Proto>
Result<Value> Parse(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Proto proto;
  if (!file || !proto.ParseFromString(bytes)) {
    return Fail(StatusCode::kInvalidFile, fmt::format("'{}' is not what it should be", path));
  }
  return ToValue(proto);
}

Result<Value> Read(const std::string& path, const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return Parse<onnx::SequenceProto>(path);
  if (type.has_optional_type()) return Parse<onnx::OptionalProto>(path);
  Result<Value> value = Parse<onnx::TensorProto>(path);
  const bool brain = type.tensor_type().elem_type() == onnx::TensorProto::BFLOAT16;
  if (!value || !brain || value->tensor().dtype() != MakeDType(kUInt, 16)) return value;
  // numpy has no bf16: the cases hold its bits.
  const Tensor bits = value->tensor();
  Result<Tensor> tensor =
      Tensor::CopyOf(TensorView(bits.view().data(), MakeDType(kBFloat, 16), bits.shape()));
  if (!tensor) return Forward(tensor);
  return Value(*std::move(tensor));
}

template <typename T>
Value VectorOf(const std::vector<T>& elements, DLDataType dtype, std::vector<std::int64_t> shape) {
  auto* data = const_cast<T*>(elements.data());
  return Value(*Tensor::CopyOf(TensorView(data, dtype, Array<std::int64_t>(shape.begin(), shape.end()))));
}

// Strings as positions of their own, with the list behind `list`.
Result<Value> ReadTexts(const std::string& path, std::vector<std::string>* texts, std::vector<Value>* list) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  onnx::TensorProto proto;
  if (!file || !proto.ParseFromString(content))
    return Fail(StatusCode::kInvalidFile, fmt::format("'{}' is not what it should be", path));
  texts->assign(proto.string_data().begin(), proto.string_data().end());
  std::vector<std::int64_t> positions, offsets = {0};
  std::vector<std::uint8_t> bytes;
  for (const std::string& text : *texts) {
    positions.push_back(static_cast<std::int64_t>(positions.size()));
    bytes.insert(bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<std::int64_t>(bytes.size()));
  }
  const auto count = static_cast<std::int64_t>(texts->size());
  list->push_back(VectorOf(offsets, kInt64, {count + 1}));
  list->push_back(VectorOf(bytes, kUInt8, {static_cast<std::int64_t>(bytes.size())}));
  return VectorOf(positions, kInt64, {proto.dims().begin(), proto.dims().end()});
}

template <typename T>
double Load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return static_cast<double>(value);
}

// The value of the 16 bits of a half.
double HalfToDouble(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// The value of a float's element.
double ToDouble(const std::byte* data, DLDataType dtype) {
  if (dtype.code == kFloat && dtype.bits == 64) return Load<double>(data);
  if (dtype.code == kFloat && dtype.bits == 32) return Load<float>(data);
  std::uint64_t raw = 0;
  std::memcpy(&raw, data, dtype.bits / 8);
  if (dtype.code == kFloat) return HalfToDouble(static_cast<std::uint16_t>(raw));
  raw <<= 16;  // bf16
  return Load<float>(reinterpret_cast<const std::byte*>(&raw));
}

// An integer's value, and that of a bool.
std::string IntegerText(const std::byte* data, DLDataType dtype) {
  std::uint64_t raw = 0;
  std::memcpy(&raw, data, ElementBytes(dtype));
  if (dtype.code != kInt) return std::to_string(raw);
  const int shift = 64 - dtype.bits;
  return std::to_string(static_cast<std::int64_t>(raw << shift) >> shift);
}

// ONNX's tolerances. Two results of bf16 may differ by two units in the last place.
bool Close(double given, double expected, DLDataType dtype) {
  if (std::isnan(expected)) return std::isnan(given);
  if (std::isinf(expected)) return given == expected;
  const double relative = dtype.code == kBFloat ? 0x1p-6 : 1e-3;
  return std::abs(given - expected) <= 1e-7 + relative * std::abs(expected);
}

std::string TensorDifference(const Tensor& given, const Tensor& expected) {
  const std::string given_type = TensorTypeText(given.dtype(), given.shape());
  const std::string expected_type = TensorTypeText(expected.dtype(), expected.shape());
  if (given_type != expected_type) return fmt::format("it is {}, expected {}", given_type, expected_type);
  DLDataType dtype = expected.dtype();
  std::int64_t count = expected.view().size();
  if (dtype.code == kComplex) {
    dtype = MakeDType(kFloat, dtype.bits / 2);
    count *= 2;
  }
  const std::size_t step = ElementBytes(dtype);
  const auto* a = static_cast<const std::byte*>(given.view().data());
  const auto* b = static_cast<const std::byte*>(expected.view().data());
  const bool is_float = dtype.code == kFloat || dtype.code == kBFloat;
  for (std::int64_t i = 0; i < count; ++i, a += step, b += step) {
    if (!is_float && std::memcmp(a, b, step) != 0) {  // integers are equal, or wrong
      return fmt::format("element {} of {} is {}, expected {}", i, given_type, IntegerText(a, dtype),
                         IntegerText(b, dtype));
    }
    if (!is_float) continue;
    const double x = ToDouble(a, dtype), y = ToDouble(b, dtype);
    if (!Close(x, y, dtype)) return fmt::format("element {} of {} is {}, expected {}", i, given_type, x, y);
  }
  return "";
}

}  // namespace

Result<CaseData> ReadCaseData(const std::string& folder) {
  const Result<compiler::ModelFile> model = compiler::ModelFile::Read(folder + "/model.onnx", {});
  if (!model) return Forward(model);
  CaseData data;
  std::vector<Value> lists, unused;
  std::vector<std::string> given;
  const auto read = [&](const char* kind, const auto& infos, std::vector<Value>* values) -> Status {
    int index = 0;
    for (const onnx::ValueInfoProto& info : infos) {
      const std::string path = fmt::format("{}/test_data_set_0/{}_{}.pb", folder, kind, index++);
      if (!std::filesystem::exists(path)) return {};
      const bool is_text = info.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
      const bool is_input = values == &data.inputs;
      Result<Value> value = !is_text   ? Read(path, info.type())
                            : is_input ? ReadTexts(path, &given, &lists)
                                       : ReadTexts(path, &data.texts[values->size()], &unused);
      if (!value) return Forward(value, path);
      values->push_back(*std::move(value));
    }
    return {};
  };
  if (Status inputs = read("input", model->graph().input(), &data.inputs); !inputs) return Forward(inputs);
  data.inputs.insert(data.inputs.end(), lists.begin(), lists.end());
  if (Status outputs = read("output", model->graph().output(), &data.outputs); !outputs)
    return Forward(outputs);
  return data;
}

std::string Difference(const Value& given, const Value& expected) {
  if (given.kind() != expected.kind()) {
    return fmt::format("it is {}, expected {}", ValueKindName(given.kind()), ValueKindName(expected.kind()));
  }
  if (expected.kind() == ValueKind::kTensor) return TensorDifference(given.tensor(), expected.tensor());
  if (given.field_count() != expected.field_count()) {
    return fmt::format("it has {} elements, expected {}", given.field_count(), expected.field_count());
  }
  for (std::uint32_t i = 0; i < expected.field_count(); ++i) {
    const std::string difference = Difference(given.field(i), expected.field(i));
    if (!difference.empty()) return fmt::format("field {}: {}", i, difference);
  }
  return "";
}

std::string TextDifference(const Module& module, const std::vector<Value>& results, std::size_t i,
                           const CaseData& data) {
  const Tensor given = results[i].tensor(), expected = data.outputs[i].tensor();
  const std::string given_type = TensorTypeText(given.dtype(), given.shape());
  const std::string expected_type = TensorTypeText(expected.dtype(), expected.shape());
  if (given_type != expected_type) return fmt::format("it is {}, expected {}", given_type, expected_type);
  nlohmann::json list;
  for (const auto& [key, value] : module.metadata) {
    if (key == fmt::format("strings main.{}", i)) list = nlohmann::json::parse(value);
  }
  if (list.is_null()) return "it is no strings";
  const auto* positions = static_cast<const std::int64_t*>(given.view().data());
  const std::vector<std::string>& texts = data.texts.at(i);
  for (std::size_t k = 0; k < texts.size(); ++k) {
    std::string text;
    if (list.is_array()) {
      text = list.at(static_cast<std::size_t>(positions[k])).get<std::string>();
    } else {
      const Tensor offsets = results.at(list.at("offsets").get<std::size_t>()).tensor();
      const Tensor bytes = results.at(list.at("bytes").get<std::size_t>()).tensor();
      const auto* at = static_cast<const std::int64_t*>(offsets.view().data()) + positions[k];
      text.assign(static_cast<const char*>(bytes.view().data()) + at[0],
                  static_cast<std::size_t>(at[1] - at[0]));
    }
    if (text != texts[k]) return fmt::format("string {} is '{}', expected '{}'", k, text, texts[k]);
  }
  return "";
}

}  // namespace rewire::test
