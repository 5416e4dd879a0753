// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/generate.h"

#include <simdjson.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/max_rank.h"
#include "rewire/base/near_names.h"
#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/sequence_step.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/http/infer_json.h"
#include "rewire/serve/http/json_elements.h"
#include "rewire/serve/http/json_parameters.h"
#include "rewire/serve/http/server_sent_events.h"
#include "rewire/serve/http/token_generate.h"
#include "rewire/serve/http/token_request.h"

namespace rewire::serve {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::object;

Status Wrong(std::string text) { return Fail(StatusCode::kInvalidArgument, std::move(text)); }

// Appends the sizes of a list and of the first of the lists inside.
Status NestedShape(const std::string& where, element value, std::vector<std::int64_t>* shape) {
  while (value.type() == element_type::ARRAY) {
    const array list = value.get_array().value_unsafe();
    if (shape->size() == kMaxRank)
      return Wrong(where + ": lists lie in each other more than " + std::to_string(kMaxRank) + " deep");
    // A list as the parser counts it may have more elements than it can tell.
    std::int64_t size = 0;
    for ([[maybe_unused]] const element one : list) ++size;
    shape->push_back(size);
    if (size == 0) return {};
    value = *list.begin();
  }
  return {};
}

// Whether each list has the size that the shape says. The depth is that of the shape.
bool HasShape(element value, const std::vector<std::int64_t>& shape, std::size_t axis) {
  if (axis == shape.size()) return value.type() != element_type::ARRAY;
  if (value.type() != element_type::ARRAY) return false;
  std::int64_t size = 0;
  const array list = value.get_array().value_unsafe();
  for (const element one : list) {
    if (shape[axis] != 0 && !HasShape(one, shape, axis + 1)) return false;
    ++size;
  }
  return size == shape[axis];
}

// An element of the tensor's, as deep as its first one lies.
bool IsText(element value) {
  while (value.type() == element_type::ARRAY) {
    const array list = value.get_array().value_unsafe();
    if (list.begin() == list.end()) return false;
    value = *list.begin();
  }
  return value.type() == element_type::STRING;
}

Status ReadInput(const TensorDescription& expected, element value, std::size_t most_elements,
                 Request* request) {
  const std::string where = "input '" + expected.name + "'";
  InputTensor& input = request->inputs.emplace_back();
  input.name = KeptText(expected.name, request);
  input.dtype = IsText(value) ? kWireText : expected.dtype;
  if (Status read = NestedShape(where, value, &input.shape); !read) return read;
  if (!HasShape(value, input.shape, 0)) return Wrong(where + ": its lists have different sizes");
  // A list for an input with a batch dimension is one row of it, and a number is any tensor of one element.
  const std::size_t rank = expected.shape.size();
  if (input.shape.size() < rank) input.shape.insert(input.shape.begin(), rank - input.shape.size(), 1);
  return ReadJsonElements(where, value, most_elements, request, &input);
}

class Generate : public Exchange {
 public:
  Generate(const Route& route, bool stream, Service* service)
      : route_(route), stream_(stream), service_(service) {}

  Piece Begin(std::string_view body, Request* request) override {
    const Result<ModelDescription> model = service_->Describe(route_.name, route_.version);
    if (model && model->generates && HasTextInput(body)) {
      if (!route_.version.empty()) {
        return {ErrorAnswer(Fail(StatusCode::kUnsupported,
                                 "a generation takes the newest version of a model: leave the version out"))};
      }
      tokens_ = MakeTokenGenerate(route_, stream_, service_);
      return tokens_->Begin(body, request);
    }
    if (Status read = Read(body, request); !read) return {ErrorAnswer(read)};
    return {{}, false, true};
  }

  Piece Continue(Request* request) override {
    if (tokens_ != nullptr) return tokens_->Continue(request);
    if (!request->status) return {ErrorAnswer(request->status)};
    std::string text;
    if (Status written = Write(*request, &text); !written) return {ErrorAnswer(written)};
    if (!stream_) return {{200, std::move(text), "application/json"}};
    return {{200, ServerSentEvent(text), kEventStream}, true, false};
  }

 private:
  Status Read(std::string_view body, Request* request) {
    const Result<ModelDescription> model = service_->Describe(route_.name, route_.version);
    if (!model) return Forward(model);
    simdjson::dom::parser parser;
    element document;
    if (const auto error = parser.parse(body.data(), body.size(), false).get(document)) {
      return Wrong(std::string("the request is no JSON: ") + simdjson::error_message(error));
    }
    object root;
    if (document.get(root) != simdjson::SUCCESS) return Wrong("the request must be an object");
    request->model = route_.name;
    request->version = route_.version;
    for (const auto& [key, value] : root) {
      if (Status read = ReadField(*model, key, value, body.size(), request); !read) return read;
    }
    return {};
  }

  static Status ReadField(const ModelDescription& model, std::string_view key, element value,
                          std::size_t most_elements, Request* request) {
    const auto input = std::find_if(model.inputs.begin(), model.inputs.end(),
                                    [key = key](const TensorDescription& one) { return one.name == key; });
    if (input != model.inputs.end()) return ReadInput(*input, value, most_elements, request);
    if (key == "id") {
      std::string_view text;
      if (value.get(text) != simdjson::SUCCESS) return Wrong("'id' must be a text");
      request->id = KeptText(text, request);
      return {};
    }
    if (key == "parameters") {
      object list;
      if (value.get(list) != simdjson::SUCCESS) return Wrong("'parameters' must be an object");
      for (const auto& [name, one] : list) {
        if (Status read = ReadParameter(name, one, request); !read) return read;
      }
      return {};
    }
    if (key == "timeout" || IsSequenceParameter(key)) return ReadParameter(key, value, request);
    std::vector<std::string> names;
    for (const TensorDescription& one : model.inputs) names.push_back(one.name);
    return Wrong("model '" + model.name + "' has no input '" + std::string(key) + "', and no parameter" +
                 KnownNames("inputs", key, names));
  }

  static Status Write(const Request& request, std::string* text) {
    JsonText json(text);
    json.Begin('{').Key("model_name").String(request.used_model);
    json.Key("model_version").String(request.used_version);
    if (!request.id.empty()) json.Key("id").String(request.id);
    for (const OutputTensor& tensor : request.results) {
      json.Key(tensor.name);
      if (Status written = json.ElementOrList(tensor); !written) return written;
    }
    json.End('}');
    return {};
  }

  const Route route_;
  const bool stream_;
  Service* const service_;
  std::unique_ptr<Exchange> tokens_;  // if a generation is asked for
};

}  // namespace

std::unique_ptr<Exchange> MakeGenerate(const Route& route, bool stream, Service* service) {
  return std::make_unique<Generate>(route, stream, service);
}

}  // namespace rewire::serve
