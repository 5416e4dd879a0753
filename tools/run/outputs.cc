// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/io/tensor_text.h"
#include "rewire/tools/run/value_spec.h"
#include "rewire/vm/devices.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

HostTensor ScalarOf(std::int64_t integer) {
  HostTensor tensor;
  tensor.dtype = kInt64;
  std::byte* data = nullptr;
  tensor.bytes = AllocateBytes(sizeof(integer), &data);
  std::memcpy(data, &integer, sizeof(integer));
  return tensor;
}

// The output's tensor, marked as used; an error that names what else it is.
Result<HostTensor> Take(Output* output) {
  if (!output->tensor) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("output '{}' is no tensor but {}", output->name, output->type));
  }
  output->used = true;
  if (output->texts) return TensorOfTexts(*output->texts);
  return *output->tensor;
}

Json ElementJson(DLDataType dtype, const std::byte* element) {
  // Numbers and booleans are spelled as JSON has them, infinities and NaN are not.
  const std::string text = text::ElementText(dtype, element);
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json(text) : json;
}

// The strings of an output by the list that two other outputs hold.
Status ReadTexts(const TextPlaces& places, Output* output, std::vector<Output>* outputs) {
  Output &offsets = (*outputs)[places.offsets], &bytes = (*outputs)[places.bytes];
  const bool are_tensors = output->tensor && offsets.tensor && bytes.tensor;
  if (!are_tensors || output->tensor->dtype != kInt64) return {};  // whoever wrote the metadata
  const Result<std::vector<std::string>> list = ListIn(*offsets.tensor, *bytes.tensor);
  if (!list) return Forward(list);
  TextArray array;
  array.shape = output->tensor->shape;
  const std::size_t count = output->tensor->bytes.view.size() / sizeof(std::int64_t);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t position = 0;
    std::memcpy(&position, output->tensor->bytes.view.data() + i * sizeof(position), sizeof(position));
    if (position < 0 || static_cast<std::uint64_t>(position) >= list->size()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("element {} is position {} of {} strings", i, position, list->size()));
    }
    array.texts.push_back((*list)[static_cast<std::size_t>(position)]);
  }
  output->lists.strings = *list;
  output->texts = std::move(array);
  offsets.is_list = bytes.is_list = true;
  return {};
}

// How many elements have bits above those of infinity, whatever their sign: they are NaN.
template <typename Bits>
std::uint64_t CountAbove(Span<const std::byte> bytes, Bits infinity) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof(bits));
    count += static_cast<Bits>(bits << 1) > static_cast<Bits>(infinity << 1) ? 1 : 0;
  }
  return count;
}

}  // namespace

Result<std::optional<HostTensor>> HostTensorOf(const Value& value) {
  if (value.kind() == ValueKind::kInteger) return ScalarOf(value.integer());
  if (value.kind() != ValueKind::kTensor) return std::nullopt;
  const Result<Tensor> on_host = CopyToHost(value.tensor());
  if (!on_host) return Forward(on_host);
  Result<HostTensor> tensor = ToHostTensor(*on_host);
  if (!tensor) return Forward(tensor);
  return *std::move(tensor);
}

Result<std::vector<Output>> CollectOutputs(const VirtualMachine& vm, const Function& function) {
  std::vector<Output> outputs;
  const std::size_t count = Leaves(function.result).size();
  for (std::uint32_t i = 0; i < count; ++i) {
    Result<Value> value = vm.TryOutput(i);
    if (!value) return Forward(value);
    Output output;
    output.name = OutputName(function, i);
    output.lists = ListsOf(vm.program().executable().module(), function.name, i);
    output.value = *std::move(value);
    Result<std::optional<HostTensor>> tensor = HostTensorOf(output.value);
    if (!tensor) return Forward(tensor, fmt::format("output '{}'", output.name));
    output.tensor = *std::move(tensor);
    output.type = output.tensor ? TensorTypeText(output.tensor->dtype, output.tensor->shape)
                                : ValueKindName(output.value.kind());
    outputs.push_back(std::move(output));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const Module& module = vm.program().executable().module();
    const auto places = PlacesOf(module, fmt::format("strings {}.{}", function.name, i), count);
    if (!places) continue;
    if (Status read = ReadTexts(*places, &outputs[i], &outputs); !read)
      return Forward(read, fmt::format("output '{}'", outputs[i].name));
  }
  return outputs;
}

Result<std::vector<std::string>> WriteOutputs(const Function& function,
                                              const std::vector<std::string>& bindings,
                                              const MappedOutputs& mapped, std::vector<Output>* outputs) {
  std::vector<std::string> paths;
  std::vector<std::vector<NamedTensor>> contents;  // by path
  for (const std::string& text : bindings) {
    const Result<FileBinding> binding = ParseFileBinding(text);
    if (!binding) return Forward(binding, "--output");
    const auto known = std::find(paths.begin(), paths.end(), binding->path);
    const auto index = static_cast<std::size_t>(known - paths.begin());
    if (known == paths.end()) {
      paths.push_back(binding->path);
      contents.emplace_back();
    }
    std::vector<Output*> chosen;
    if (binding->target.empty()) {
      for (Output& output : *outputs) chosen.push_back(&output);
    } else {
      const Result<std::uint32_t> leaf = FindOutput(function, binding->target);
      if (!leaf) return Forward(leaf, "--output");
      chosen.push_back(&(*outputs)[*leaf]);
    }
    for (Output* output : chosen) {
      Result<HostTensor> tensor = Take(output);
      if (!tensor) return Forward(tensor, "--output");
      contents[index].push_back({output->name, *std::move(tensor)});
    }
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto in_place = std::find_if(mapped.begin(), mapped.end(), [&](const auto& output) {
      return output->path() == paths[i] && contents[i].size() == 1 && output->Holds(contents[i][0].tensor);
    });
    const Status written = in_place != mapped.end() ? (*in_place)->Commit(contents[i][0].tensor)
                                                    : WriteTensors(paths[i], contents[i]);
    if (!written) return Forward(written);
  }
  return paths;
}

std::string OutputHead(const Output& output) { return fmt::format("{}: {}\n", output.name, output.type); }

std::uint64_t CountNan(const HostTensor& tensor) {
  const DLDataType dtype = tensor.dtype;
  const Span<const std::byte> bytes = tensor.bytes.view;
  if (dtype == kFloat32) return CountAbove<std::uint32_t>(bytes, 0x7F800000);
  if (dtype == kFloat64) return CountAbove<std::uint64_t>(bytes, 0x7FF0000000000000);
  if (dtype == kFloat16) return CountAbove<std::uint16_t>(bytes, 0x7C00);
  if (dtype == MakeDType(kBFloat, 16)) return CountAbove<std::uint16_t>(bytes, 0x7F80);
  return 0;
}

std::string OutputText(const Output& output) {
  if (!output.tensor) return fmt::format("{}: {}\n", output.name, ValueText(output.value));
  TensorTextOptions options;
  std::string notes;
  if (output.lists.strings.is_array()) {
    notes = ", strings";
    options.element = [&](std::int64_t position) {
      const std::string* text = output.lists.StringAt(position);
      return text == nullptr ? std::to_string(position)
                             : Json(*text).dump(-1, ' ', false, Json::error_handler_t::replace);
    };
  }
  if (output.lists.keys.is_array()) notes += ", columns " + output.lists.keys.dump();
  return fmt::format("{}: {}{}\n{}\n", output.name, output.type, notes, TensorText(*output.tensor, options));
}

Json OutputJson(const Output& output) {
  Json json = {{"name", output.name}, {"type", output.type}};
  if (!output.tensor) {
    json["value"] = ValueText(output.value);
    return json;
  }
  const HostTensor& tensor = *output.tensor;
  json["dtype"] = DTypeName(tensor.dtype);
  if (output.lists.strings.is_array()) json["strings"] = output.texts ? Json(true) : output.lists.strings;
  if (output.lists.keys.is_array()) json["columns"] = output.lists.keys;
  json["shape"] = tensor.shape;
  constexpr std::size_t kMostElements = 1000;
  const std::size_t step = ElementBytes(tensor.dtype);
  const std::size_t count = tensor.bytes.view.size() / step;
  json["data"] = nullptr;
  if (count > kMostElements || !text::HasElementText(tensor.dtype)) return json;
  Json data = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    Json element = ElementJson(tensor.dtype, tensor.bytes.view.data() + i * step);
    const std::string* text =
        element.is_number_integer() ? output.lists.StringAt(element.get<std::int64_t>()) : nullptr;
    data.push_back(text == nullptr ? std::move(element) : Json(*text));
  }
  json["data"] = std::move(data);
  return json;
}

}  // namespace rewire::tools
