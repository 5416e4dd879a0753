// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/initializers.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "rewire/onnxruntime_api/sessions/model_fields.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"

namespace rewire::onnxruntime_api {
namespace {

// Fields of onnx.proto.
enum : std::uint64_t {
  kModelGraph = 7,
  kGraphInitializer = 5,
  kTensorDims = 1,
  kTensorType = 2,
  kTensorName = 8,
  kTensorRawData = 9,
  kTensorExternalData = 13,
  kTensorDataLocation = 14,
  kEntryKey = 1,
  kEntryValue = 2,
};
constexpr std::uint64_t kExternal = 1;

// A tensor of the model, without its elements.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> dims;
  std::uint64_t type = 0;
  bool external = false;
  std::string location;
  std::optional<std::uint64_t> offset, length;
};

std::optional<std::uint64_t> NumberOf(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

void ReadEntry(std::string_view bytes, Tensor* tensor) {
  std::string_view key, value;
  for (Fields entry(bytes); entry.Next();) {
    if (entry.field() == kEntryKey) key = entry.text();
    if (entry.field() == kEntryValue) value = entry.text();
  }
  if (key == "location") tensor->location = std::string(value);
  if (key == "offset") tensor->offset = NumberOf(value);
  if (key == "length") tensor->length = NumberOf(value);
}

Tensor ReadTensor(std::string_view bytes) {
  Tensor tensor;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.field() == kTensorDims) fields.AppendNumbers(&tensor.dims);
    if (fields.field() == kTensorType) tensor.type = fields.number();
    if (fields.field() == kTensorName) tensor.name = fields.string();
    if (fields.field() == kTensorExternalData) ReadEntry(fields.text(), &tensor);
    if (fields.field() == kTensorDataLocation) tensor.external = fields.number() == kExternal;
  }
  return tensor;
}

std::string Inline(const Tensor& tensor, std::string_view elements) {
  std::string bytes;
  for (const std::int64_t dim : tensor.dims)
    AppendField(kTensorDims, static_cast<std::uint64_t>(dim), &bytes);
  AppendField(kTensorType, tensor.type, &bytes);
  AppendField(kTensorName, tensor.name, &bytes);
  AppendField(kTensorRawData, elements, &bytes);
  return bytes;
}

// The elements that the host gives for an external tensor; nullopt if it gives none.
Result<std::optional<std::string_view>> ElementsOf(const Tensor& tensor, const GivenInitializers& given) {
  const auto value = given.values.find(tensor.name);
  if (value != given.values.end()) {
    const ValueBody& body = *value->second;
    if (static_cast<std::uint64_t>(body.type) != tensor.type || body.shape != tensor.dims)
      return Fail(StatusCode::kInvalidArgument,
                  "initializer '{}' is given a value of another type or shape than the model has",
                  tensor.name);
    return std::optional(std::string_view(static_cast<const char*>(body.data), body.bytes()));
  }
  const auto file = given.files.find(tensor.location);
  if (file == given.files.end()) return std::optional<std::string_view>();
  const std::string_view bytes(reinterpret_cast<const char*>(file->second.data()), file->second.size());
  const std::uint64_t offset = tensor.offset.value_or(0);
  const std::uint64_t left = offset <= bytes.size() ? bytes.size() - offset : 0;
  if (offset > bytes.size() || tensor.length.value_or(left) > left)
    return Fail(StatusCode::kInvalidArgument, "initializer '{}' ends behind the {} bytes of the file '{}'",
                tensor.name, bytes.size(), tensor.location);
  return std::optional(bytes.substr(offset, tensor.length.value_or(left)));
}

Result<std::string> WriteGraph(std::string_view graph, const GivenInitializers& given,
                               const std::set<std::string>& overridden) {
  std::string written;
  Fields fields(graph);
  while (fields.Next()) {
    if (fields.field() != kGraphInitializer) {
      written.append(fields.raw());
      continue;
    }
    const Tensor tensor = ReadTensor(fields.text());
    if (overridden.count(tensor.name) != 0) continue;
    Result<std::optional<std::string_view>> elements = std::optional<std::string_view>();
    if (tensor.external) elements = ElementsOf(tensor, given);
    if (!elements) return Forward(elements);
    if (*elements) {
      AppendField(kGraphInitializer, Inline(tensor, **elements), &written);
    } else {
      written.append(fields.raw());
    }
  }
  written.append(fields.rest());  // what is damaged stays so: the compiler says what is wrong
  return written;
}

}  // namespace

Result<std::string> WithInitializers(Span<const std::byte> model, const GivenInitializers& given,
                                     const std::set<std::string>& overridden) {
  std::string written;
  Fields fields({reinterpret_cast<const char*>(model.data()), model.size()});
  while (fields.Next()) {
    if (fields.field() != kModelGraph) {
      written.append(fields.raw());
      continue;
    }
    const Result<std::string> graph = WriteGraph(fields.text(), given, overridden);
    if (!graph) return Forward(graph);
    AppendField(kModelGraph, *graph, &written);
  }
  written.append(fields.rest());
  return written;
}

}  // namespace rewire::onnxruntime_api
