// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/infer_json.h"

#include <simdjson.h>

#include <optional>
#include <utility>

#include "rewire/base/max_rank.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/http/json_elements.h"
#include "rewire/serve/http/json_parameters.h"

namespace rewire::serve {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

Status Invalid(std::string text) { return Fail(StatusCode::kInvalidArgument, std::move(text)); }

std::string Quoted(std::string_view what, std::string_view name) {
  return std::string(what) + " '" + std::string(name) + "'";
}

std::optional<std::uint64_t> Unsigned(element value) {
  std::uint64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  return std::nullopt;
}

// TensorParameters: the parameters of an input or output.
struct TensorParameters {
  std::optional<std::uint64_t> binary_size;
  std::optional<bool> binary;
  std::string_view region;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> bytes;
  std::uint32_t classes = 0;
};

Status ReadTensorParameters(const std::string& where, object tensor, TensorParameters* parameters) {
  element found;
  if (tensor["parameters"].get(found) != simdjson::SUCCESS) return {};
  object list;
  if (found.get(list) != simdjson::SUCCESS) return Invalid(where + ": 'parameters' must be an object");
  for (const auto& [key, value] : list) {
    const std::optional<std::uint64_t> number = Unsigned(value);
    bool good = true;
    if (key == "binary_data_size") {
      parameters->binary_size = number;
      good = number.has_value();
    } else if (key == "binary_data") {
      bool flag = false;
      good = value.get(flag) == simdjson::SUCCESS;
      parameters->binary = flag;
    } else if (key == "shared_memory_region") {
      good = value.get(parameters->region) == simdjson::SUCCESS && !parameters->region.empty();
    } else if (key == "shared_memory_offset") {
      good = number.has_value();
      parameters->offset = number.value_or(0);
    } else if (key == "shared_memory_byte_size") {
      parameters->bytes = number;
      good = number.has_value();
    } else if (key == "classification") {
      good = number.has_value() && *number < std::uint64_t{1} << 32;
      parameters->classes = static_cast<std::uint32_t>(number.value_or(0));
    }
    if (!good) return Invalid(where + ": the parameter '" + std::string(key) + "' has a wrong value");
  }
  if (!parameters->region.empty() && !parameters->bytes) {
    return Invalid(where + ": 'shared_memory_region' needs 'shared_memory_byte_size'");
  }
  if (!parameters->region.empty() && parameters->classes > 0) {
    return Invalid(where +
                   ": one of 'classification' and 'shared_memory_region' is expected, both are given");
  }
  return {};
}

Status ReadShape(const std::string& where, object tensor, std::vector<std::int64_t>* shape) {
  array dims;
  if (tensor["shape"].get(dims) != simdjson::SUCCESS)
    return Invalid(where + ": 'shape' must be a list of whole numbers");
  shape->clear();
  for (const element dim : dims) {
    std::int64_t size = 0;
    if (dim.get(size) != simdjson::SUCCESS || size < 0) {
      return Invalid(where + ": 'shape' must be a list of whole numbers, none below 0");
    }
    if (shape->size() == kMaxRank)
      return Invalid(where + ": 'shape' has more than " + std::to_string(kMaxRank) + " dimensions");
    shape->push_back(size);
  }
  return {};
}

Status ReadInput(element value, const SharedRegions& regions, std::size_t most_elements,
                 Span<const std::byte>* tensors, Request* request) {
  object tensor;
  std::string_view name;
  if (value.get(tensor) != simdjson::SUCCESS || tensor["name"].get(name) != simdjson::SUCCESS) {
    return Invalid("each of 'inputs' must be an object with a 'name'");
  }
  InputTensor& input = request->inputs.emplace_back();
  input.name = KeptText(name, request);
  const std::string where = Quoted("input", name);
  std::string_view dtype;
  if (tensor["datatype"].get(dtype) != simdjson::SUCCESS)
    return Invalid(where + ": 'datatype' must be a text");
  const std::optional<DLDataType> known = dtype == WireName(kWireText) ? kWireText : ParseWireName(dtype);
  if (!known) return Invalid(where + ": there is no datatype '" + std::string(dtype) + "' here");
  input.dtype = *known;
  if (Status read = ReadShape(where, tensor, &input.shape); !read) return read;
  TensorParameters parameters;
  if (Status read = ReadTensorParameters(where, tensor, &parameters); !read) return read;
  element data;
  const bool has_data = tensor["data"].get(data) == simdjson::SUCCESS;
  const int places =
      (has_data ? 1 : 0) + (parameters.binary_size ? 1 : 0) + (parameters.region.empty() ? 0 : 1);
  if (places != 1) {
    return Invalid(where +
                   ": exactly one of 'data', 'binary_data_size' and 'shared_memory_region' must say where "
                   "its elements are");
  }
  if (has_data && data.type() != simdjson::dom::element_type::ARRAY)
    return Invalid(where + ": 'data' must be a list");
  if (has_data) return ReadJsonElements(where, data, most_elements, request, &input);
  if (parameters.binary_size) {
    if (*parameters.binary_size > tensors->size()) {
      return Invalid(where + ": 'binary_data_size' is " + std::to_string(*parameters.binary_size) + ", and " +
                     std::to_string(tensors->size()) + " bytes are left");
    }
    input.data = tensors->subspan(0, static_cast<std::size_t>(*parameters.binary_size));
    *tensors = tensors->subspan(static_cast<std::size_t>(*parameters.binary_size));
    return {};
  }
  Result<RegionPart> part = regions.Find(parameters.region, parameters.offset, *parameters.bytes);
  if (!part) return Forward(part, where);
  input.data = part->data;
  input.owner = std::move(part->owner);
  return {};
}

Status ReadOutput(element value, const SharedRegions& regions, Request* request, ResponseForm* form) {
  object tensor;
  std::string_view name;
  if (value.get(tensor) != simdjson::SUCCESS || tensor["name"].get(name) != simdjson::SUCCESS) {
    return Invalid("each of 'outputs' must be an object with a 'name'");
  }
  const std::string where = Quoted("output", name);
  TensorParameters parameters;
  if (Status read = ReadTensorParameters(where, tensor, &parameters); !read) return read;
  WantedOutput& wanted = request->wanted.emplace_back();
  OutputForm& one = form->wanted.emplace_back();
  wanted.name = KeptText(name, request);
  wanted.classes = parameters.classes;
  one.binary = parameters.binary.value_or(form->binary);
  if (parameters.region.empty()) return {};
  Result<RegionPart> part = regions.Find(parameters.region, parameters.offset, *parameters.bytes);
  if (!part) return Forward(part, where);
  wanted.place = part->data;
  wanted.owner = std::move(part->owner);
  one.region = KeptText(parameters.region, request);
  one.offset = parameters.offset;
  return {};
}

Status ReadParameters(object root, Request* request, ResponseForm* form) {
  element found;
  if (root["parameters"].get(found) != simdjson::SUCCESS) return {};
  object list;
  if (found.get(list) != simdjson::SUCCESS) return Invalid("'parameters' must be an object");
  for (const auto& [key, value] : list) {
    if (key == "binary_data_output") {
      if (value.get(form->binary) != simdjson::SUCCESS)
        return Invalid("the parameter 'binary_data_output' must be true or false");
      continue;
    }
    if (Status read = ReadParameter(key, value, request); !read) return read;
  }
  return {};
}

}  // namespace

struct InferReader::Parser {
  simdjson::dom::parser dom;
};

InferReader::InferReader() : parser_(std::make_unique<Parser>()) {}
InferReader::~InferReader() = default;

Status InferReader::Read(std::string_view json, Span<const std::byte> tensors, const SharedRegions& regions,
                         Request* request, ResponseForm* form) {
  form->binary = false;
  form->wanted.clear();
  element document;
  if (const auto error = parser_->dom.parse(json.data(), json.size(), false).get(document)) {
    return Invalid(std::string("the request is no JSON: ") + simdjson::error_message(error));
  }
  object root;
  if (document.get(root) != simdjson::SUCCESS) return Invalid("the request must be an object");
  // Before the outputs, whose form it says.
  if (Status read = ReadParameters(root, request, form); !read) return read;
  const std::size_t most_elements = json.size();
  element id;
  if (root["id"].get(id) == simdjson::SUCCESS) {
    std::string_view text;
    if (id.get(text) != simdjson::SUCCESS) return Invalid("'id' must be a text");
    request->id = KeptText(text, request);
  }
  array inputs;
  if (root["inputs"].get(inputs) != simdjson::SUCCESS) return Invalid("'inputs' must be a list of tensors");
  for (const element input : inputs) {
    if (Status read = ReadInput(input, regions, most_elements, &tensors, request); !read) return read;
  }
  if (!tensors.empty()) {
    return Invalid(std::to_string(tensors.size()) +
                   " bytes behind the JSON belong to no input: 'binary_data_size' says how many each has");
  }
  element outputs;
  if (root["outputs"].get(outputs) != simdjson::SUCCESS) return {};
  array list;
  if (outputs.get(list) != simdjson::SUCCESS) return Invalid("'outputs' must be a list");
  for (const element output : list) {
    if (Status read = ReadOutput(output, regions, request, form); !read) return read;
  }
  return {};
}

}  // namespace rewire::serve
