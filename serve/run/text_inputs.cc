// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/text_inputs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/serve/core/shape_product.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

Status Damaged(const std::string& input, std::size_t element) {
  return Fail(StatusCode::kInvalidArgument,
              "input '{}': element {} of BYTES is damaged: a size of 4 bytes and as many bytes are expected",
              input, element);
}

Status Replace(const ModelSignature& signature, const ModelInput& model, InputTensor texts,
               Request* request) {
  std::string_view rest(reinterpret_cast<const char*>(texts.data.data()), texts.data.size());
  std::vector<std::string_view> list;
  while (!rest.empty()) {
    const std::optional<std::string_view> text = TakeWireText(&rest);
    if (!text) return Damaged(model.name, list.size());
    list.push_back(*text);
  }
  if (const std::optional<std::uint64_t> elements = ShapeProduct(texts.shape); elements != list.size()) {
    return Fail(StatusCode::kInvalidArgument, "input '{}': its shape has {} elements, and {} texts are given",
                model.name, elements ? std::to_string(*elements) : "too many", list.size());
  }
  std::size_t bytes = 0;
  for (const std::string_view text : list) bytes += text.size();
  const std::size_t places_bytes = list.size() * sizeof(std::int64_t);
  const std::size_t offsets_bytes = places_bytes + sizeof(std::int64_t);
  Arena& memory = request->memory;
  std::byte* const places = memory.Allocate(std::max<std::size_t>(places_bytes, 1));
  std::byte* const offsets = memory.Allocate(offsets_bytes);
  std::byte* const content = memory.Allocate(std::max<std::size_t>(bytes, 1));
  if (places == nullptr || offsets == nullptr || content == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "input '{}': there is no memory for its texts", model.name);
  }
  std::int64_t used = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    std::memcpy(offsets + i * sizeof used, &used, sizeof used);
    if (i == list.size()) break;
    const auto place = static_cast<std::int64_t>(i);
    std::memcpy(places + i * sizeof place, &place, sizeof place);
    if (!list[i].empty()) std::memcpy(content + used, list[i].data(), list[i].size());
    used += static_cast<std::int64_t>(list[i].size());
  }
  const auto add = [&](const std::string& name, DLDataType dtype, std::vector<std::int64_t> shape,
                       const std::byte* data, std::size_t size) {
    InputTensor& tensor = request->inputs.emplace_back();
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    tensor.data = {data, size};
  };
  const auto count = static_cast<std::int64_t>(list.size());
  add(model.name, kInt64, std::move(texts.shape), places, places_bytes);
  add(signature.inputs[model.texts->offsets].name, kInt64, {count + 1}, offsets, offsets_bytes);
  add(signature.inputs[model.texts->bytes].name, kUInt8, {used}, content, bytes);
  return {};
}

}  // namespace

Status ReplaceTexts(const ModelSignature& signature, Request* request) {
  std::vector<InputTensor>& inputs = request->inputs;
  const auto is_text = [](const InputTensor& input) { return input.dtype == kWireText; };
  if (std::none_of(inputs.begin(), inputs.end(), is_text)) return {};
  std::vector<InputTensor> given = std::move(inputs);
  inputs.clear();
  for (InputTensor& input : given) {
    if (!is_text(input)) {
      inputs.push_back(std::move(input));
      continue;
    }
    const auto model = std::find_if(signature.inputs.begin(), signature.inputs.end(),
                                    [&](const ModelInput& one) { return one.name == input.name; });
    if (model == signature.inputs.end() || !model->texts) {
      return Fail(
          StatusCode::kInvalidArgument, "input '{}': the model takes no BYTES here{}", input.name,
          model == signature.inputs.end() ? std::string() : ", but " + std::string(WireName(model->dtype)));
    }
    if (Status replaced = Replace(signature, *model, std::move(input), request); !replaced)
      return Forward(replaced);
  }
  return {};
}

}  // namespace rewire::serve
