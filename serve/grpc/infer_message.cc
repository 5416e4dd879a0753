// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/infer_message.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rewire/serve/core/sequence_step.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/grpc/protobuf_wire.h"
#include "rewire/serve/grpc/tensor_contents.h"

namespace rewire::serve {
namespace {

constexpr std::uint32_t kRawInputs = 7, kRawOutputs = 6;  // fields of the two messages
constexpr std::size_t kMostRank = 64;                     // no model takes so many dimensions

Status Malformed(const char* what) {
  return Fail(StatusCode::kInvalidArgument, std::string("the message is malformed: ") + what);
}

std::string Quoted(const char* what, std::string_view name) {
  return std::string(what) + " '" + std::string(name) + "'";
}

// An entry of a map from texts to InferParameter.
Status ReadParameter(std::string_view entry, Parameter* parameter) {
  WireReader reader(entry);
  std::string_view choice;
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) parameter->name = reader.bytes();
    if (reader.Is(2, WireType::kBytes)) choice = reader.bytes();
  }
  WireReader value(choice);
  while (value.Next()) {
    if (value.Is(1, WireType::kVarint)) parameter->value = value.flag();
    if (value.Is(2, WireType::kVarint) || value.Is(5, WireType::kVarint)) parameter->value = value.integer();
    if (value.Is(3, WireType::kBytes)) parameter->value = value.bytes();
    if (value.Is(4, WireType::kFixed64)) parameter->value = value.real();
  }
  return reader.malformed() || value.malformed() ? Malformed("a parameter") : Status();
}

// The parameters of a tensor.
struct TensorParameters {
  std::string_view region;
  std::int64_t offset = 0;
  std::optional<std::int64_t> bytes;
  std::uint32_t classes = 0;

  Status Add(const Parameter& parameter, const std::string& where) {
    const auto* const text = std::get_if<std::string_view>(&parameter.value);
    const auto* const number = std::get_if<std::int64_t>(&parameter.value);
    const auto wrong = [&](const char* expected) {
      return Fail(StatusCode::kInvalidArgument,
                  where + ": the parameter '" + std::string(parameter.name) + "' must be " + expected);
    };
    if (parameter.name == "shared_memory_region") {
      if (text == nullptr || text->empty()) return wrong("the name of a region");
      region = *text;
    } else if (parameter.name == "shared_memory_offset" || parameter.name == "shared_memory_byte_size") {
      if (number == nullptr || *number < 0) return wrong("a number of bytes");
      if (parameter.name == "shared_memory_offset") {
        offset = *number;
      } else {
        bytes = *number;
      }
    } else if (parameter.name == "classification") {
      if (number == nullptr || *number < 0 || *number >= std::int64_t{1} << 32)
        return wrong("a number of classes");
      classes = static_cast<std::uint32_t>(*number);
    }
    return {};
  }
  Result<RegionPart> Find(const SharedRegions& regions, const std::string& where) const {
    if (!bytes)
      return Fail(StatusCode::kInvalidArgument,
                  where + ": the parameter 'shared_memory_byte_size' is missing");
    Result<RegionPart> part =
        regions.Find(region, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(*bytes));
    if (!part) return Forward(part, where);
    return part;
  }
};

Status ReadShape(const WireReader& field, const std::string& where, std::vector<std::int64_t>* shape) {
  std::string_view rest = field.bytes();
  std::uint64_t size = field.number();
  const bool packed = field.type() == WireType::kBytes;
  while (!packed || !rest.empty()) {
    if (packed && !WireReader::TakeVarint(&rest, &size)) return Malformed("a shape");
    if (static_cast<std::int64_t>(size) < 0)
      return Fail(StatusCode::kInvalidArgument, where + ": a size of its shape is negative");
    if (shape->size() == kMostRank) {
      return Fail(StatusCode::kInvalidArgument,
                  where + ": more than " + std::to_string(kMostRank) + " dimensions");
    }
    shape->push_back(static_cast<std::int64_t>(size));
    if (!packed) break;
  }
  return {};
}

// An input without its raw contents. `needs_raw` says whether they are to follow.
Status ReadInput(std::string_view message, const SharedRegions& regions, Request* request, bool* needs_raw) {
  InputTensor& input = request->inputs.emplace_back();
  std::string_view datatype, contents;
  bool has_contents = false;
  // The name comes first, as errors have it.
  WireReader named(message);
  while (named.Next()) {
    if (named.Is(1, WireType::kBytes)) input.name = named.bytes();
  }
  const std::string where = Quoted("input", input.name);
  TensorParameters parameters;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.Is(2, WireType::kBytes)) datatype = reader.bytes();
    if (reader.Is(3, WireType::kBytes) || reader.Is(3, WireType::kVarint)) {
      if (Status read = ReadShape(reader, where, &input.shape); !read) return read;
    }
    if (reader.Is(4, WireType::kBytes)) {
      Parameter parameter;
      if (Status read = ReadParameter(reader.bytes(), &parameter); !read) return read;
      if (Status added = parameters.Add(parameter, where); !added) return added;
    }
    if (reader.Is(5, WireType::kBytes)) {
      contents = reader.bytes();
      has_contents = true;
    }
  }
  if (reader.malformed()) return Malformed("an input");
  const std::optional<DLDataType> dtype =
      datatype == WireName(kWireText) ? kWireText : ParseWireName(datatype);
  if (!dtype) {
    return Fail(StatusCode::kInvalidArgument,
                where + ": there is no datatype '" + std::string(datatype) + "' here");
  }
  input.dtype = *dtype;
  *needs_raw = !has_contents && parameters.region.empty();
  if (*needs_raw) return {};
  if (has_contents && !parameters.region.empty()) {
    return Fail(
        StatusCode::kInvalidArgument,
        where + ": its elements are in 'contents' and in a region of shared memory; one of them is expected");
  }
  if (has_contents) return ReadTensorContents(contents, where, &request->memory, &input);
  Result<RegionPart> part = parameters.Find(regions, where);
  if (!part) return Forward(part);
  input.data = part->data;
  input.owner = std::move(part->owner);
  return {};
}

Status ReadOutput(std::string_view message, const SharedRegions& regions, Request* request,
                  OutputRegion* region) {
  WantedOutput& wanted = request->wanted.emplace_back();
  TensorParameters parameters;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) wanted.name = reader.bytes();
    if (reader.Is(2, WireType::kBytes)) {
      Parameter parameter;
      if (Status read = ReadParameter(reader.bytes(), &parameter); !read) return read;
      if (Status added = parameters.Add(parameter, "an output"); !added) return added;
    }
  }
  if (reader.malformed()) return Malformed("an output");
  wanted.classes = parameters.classes;
  if (parameters.region.empty()) return {};
  if (parameters.classes > 0) {
    return Fail(StatusCode::kInvalidArgument,
                Quoted("output", wanted.name) +
                    ": one of 'classification' and 'shared_memory_region' is expected, both are given");
  }
  Result<RegionPart> part = parameters.Find(regions, Quoted("output", wanted.name));
  if (!part) return Forward(part);
  wanted.place = part->data;
  wanted.owner = std::move(part->owner);
  *region = {parameters.region, static_cast<std::uint64_t>(parameters.offset)};
  return {};
}

Status AddParameter(const Parameter& parameter, Request* request) {
  const auto* const number = std::get_if<std::int64_t>(&parameter.value);
  if (IsSequenceParameter(parameter.name)) return SetSequenceParameter(parameter, &request->step);
  if (parameter.name == "timeout") {
    if (number == nullptr || *number < 0)
      return Fail(StatusCode::kInvalidArgument, "the parameter 'timeout' must be a number of microseconds");
    constexpr std::int64_t kForever = std::int64_t{1} << 50;
    if (*number > 0) {
      request->deadline =
          std::min(request->deadline, Clock::now() + std::chrono::microseconds(std::min(*number, kForever)));
    }
  }
  request->parameters.push_back(parameter);
  return {};
}

}  // namespace

Status ReadInferRequest(std::string_view message, const SharedRegions& regions, Request* request,
                        std::vector<OutputRegion>* regions_of) {
  std::vector<std::size_t> raw;  // the inputs whose contents follow
  std::vector<std::string_view> contents;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    const std::string_view bytes = reader.bytes();
    Status read;
    Parameter parameter;
    bool needs_raw = false;
    switch (reader.field()) {
      case 1:
        request->model = bytes;
        break;
      case 2:
        request->version = bytes;
        break;
      case 3:
        request->id = bytes;
        break;
      case 4:
        read = ReadParameter(bytes, &parameter);
        if (read) read = AddParameter(parameter, request);
        break;
      case 5:
        read = ReadInput(bytes, regions, request, &needs_raw);
        if (needs_raw) raw.push_back(request->inputs.size() - 1);
        break;
      case 6:
        read = ReadOutput(bytes, regions, request, &regions_of->emplace_back());
        break;
      case kRawInputs:
        contents.push_back(bytes);
        break;
      default:  // of a later version of the protocol
        break;
    }
    if (!read) return read;
  }
  if (reader.malformed()) return Malformed("a ModelInferRequest is expected");
  if (contents.size() != raw.size()) {
    return Fail(StatusCode::kInvalidArgument,
                std::to_string(raw.size()) + " of raw_input_contents expected, " +
                    std::to_string(contents.size()) +
                    " given: one for each input without 'contents' and shared memory");
  }
  for (std::size_t i = 0; i < raw.size(); ++i)
    request->inputs[raw[i]].data = {reinterpret_cast<const std::byte*>(contents[i].data()),
                                    contents[i].size()};
  return {};
}

std::size_t OffsetOfTensors(std::string_view beginning) {
  std::string_view rest = beginning;
  while (!rest.empty()) {
    std::uint64_t tag = 0, length = 0;
    // All fields in front of the tensors are texts and messages.
    if (!WireReader::TakeVarint(&rest, &tag) || (tag & 7) != 2 || !WireReader::TakeVarint(&rest, &length))
      return 0;
    if (tag >> 3 == kRawInputs) return beginning.size() - rest.size();
    if (length > rest.size()) return 0;
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  return 0;
}

void WriteInferResponse(const Request& request, const std::vector<OutputRegion>& regions_of, bool in_stream,
                        std::string* text, std::vector<MessagePart>* parts) {
  const std::size_t begin = text->size();
  std::string head;
  WireWriter response(&head);
  response.Text(1, request.used_model).Text(2, request.used_version).Text(3, request.id);
  const auto region_of = [&](const OutputTensor& tensor) {
    return tensor.wanted < regions_of.size() ? regions_of[tensor.wanted] : OutputRegion();
  };
  for (const OutputTensor& tensor : request.results) {
    response.Message(5, [&](WireWriter* output) {
      output->Text(1, tensor.name).Text(2, WireName(tensor.dtype)).Packed(3, tensor.shape);
      const OutputRegion region = region_of(tensor);
      if (region.name.empty()) return;
      output->Entry(4, "shared_memory_region", [&](WireWriter* value) { value->AlwaysText(3, region.name); });
      output->Entry(4, "shared_memory_offset",
                    [&](WireWriter* value) { value->AlwaysNumber(2, region.offset); });
      output->Entry(4, "shared_memory_byte_size",
                    [&](WireWriter* value) { value->AlwaysNumber(2, tensor.bytes); });
    });
  }
  // Clients find contents by the number of the output, so one in a region has empty ones.
  std::size_t size = head.size();
  std::vector<std::string> heads;
  for (const OutputTensor& tensor : request.results) {
    const std::size_t bytes = region_of(tensor).name.empty() ? static_cast<std::size_t>(tensor.bytes) : 0;
    WireWriter(&heads.emplace_back()).Head(kRawOutputs, bytes);
    size += heads.back().size() + bytes;
  }
  if (in_stream) WireWriter(text).Head(2, size);
  text->append(head);
  std::size_t part = begin;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    text->append(heads[i]);
    const OutputTensor& tensor = request.results[i];
    if (!region_of(tensor).name.empty() || tensor.bytes == 0) continue;
    parts->push_back({part, text->size() - part, {}});
    parts->push_back({0, 0, {tensor.data, static_cast<std::size_t>(tensor.bytes)}});
    part = text->size();
  }
  if (part != text->size()) parts->push_back({part, text->size() - part, {}});
}

}  // namespace rewire::serve
