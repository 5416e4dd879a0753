// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/http_channel.h"

#include <simdjson.h>

#include <utility>

#include "rewire/serve/client/http_exchange.h"
#include "rewire/serve/core/dim_names.h"
#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/percent_code.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::uint64_t kMostJson = std::uint64_t{16} << 20;

Status StrangeJson(const char* what) {
  return Fail(StatusCode::kUnsupported, "the server's answer is no JSON of the Open Inference Protocol: {}",
              what);
}

Status ReadJsonShape(object from, std::vector<std::int64_t>* shape) {
  array sizes;
  if (from["shape"].get(sizes) != SUCCESS) return StrangeJson("a tensor without 'shape'");
  for (const element size : sizes) {
    std::int64_t value = 0;
    if (size.get(value) != SUCCESS) return StrangeJson("a size that is no integer");
    shape->push_back(value);
  }
  return {};
}

// Name, datatype and shape of a tensor, which answers and descriptions have alike.
template <typename Tensor>
Status ReadJsonTensor(element from, object* fields, Tensor* tensor) {
  std::string_view name, datatype;
  if (from.get(*fields) != SUCCESS || (*fields)["name"].get(name) != SUCCESS ||
      (*fields)["datatype"].get(datatype) != SUCCESS)
    return StrangeJson("a tensor without 'name' and 'datatype'");
  const std::optional<DLDataType> dtype = ParseWireName(datatype);
  if (!dtype)
    return Fail(StatusCode::kUnsupported, "tensor '{}' has elements of {}, which a program cannot have", name,
                datatype);
  tensor->name = name;
  tensor->dtype = *dtype;
  return ReadJsonShape(*fields, &tensor->shape);
}

Status ReadJsonTensors(object root, const char* key, std::vector<RemoteTensor>* tensors) {
  array list;
  if (root[key].get(list) != SUCCESS) return StrangeJson("the description of a model has no tensors");
  for (const element one : list) {
    object fields;
    if (Status read = ReadJsonTensor(one, &fields, &tensors->emplace_back()); !read) return read;
  }
  return {};
}

void ReadJsonDims(object root, std::string_view prefix, std::vector<RemoteTensor>* tensors) {
  object parameters;
  if (root["parameters"].get(parameters) != SUCCESS) return;  // another server's
  for (RemoteTensor& tensor : *tensors) {
    std::string_view text;
    if (parameters[std::string(prefix) + tensor.name]["string_value"].get(text) == SUCCESS)
      tensor.dims = text;
  }
}

class HttpChannel final : public Channel {
 public:
  HttpChannel(ClientSocket socket, const RemoteUrl& url)
      : exchange_(std::move(socket), url.Authority(), url.token),
        model_("/v2/models/" + PercentEncoded(url.model, IsPlainInPath) +
               (url.version.empty() ? "" : "/versions/" + url.version)) {}

  Result<RemoteSignature> Describe(const Patience& patience) override {
    RemoteSignature signature;
    object root;
    if (Status asked = Ask("GET", model_, {}, &root, patience); !asked) return Forward(asked);
    if (Status read = ReadJsonTensors(root, "inputs", &signature.inputs); !read) return Forward(read);
    if (Status read = ReadJsonTensors(root, "outputs", &signature.outputs); !read) return Forward(read);
    // Servers without the extension have no configuration.
    if (Status asked = Ask("GET", model_ + "/config", {}, &root, patience); !asked) {
      return usable() ? Result<RemoteSignature>(std::move(signature)) : Forward(asked);
    }
    ReadJsonDims(root, kInputDims, &signature.inputs);
    ReadJsonDims(root, kOutputDims, &signature.outputs);
    return signature;
  }

  Status Begin(const InferCall& call, std::vector<AnsweredTensor>* outputs,
               const Patience& patience) override {
    WriteRequest(call);
    std::vector<Span<const std::byte>> tensors;
    for (const SentTensor& input : call.inputs) {
      if (input.place.region.empty()) tensors.push_back(input.bytes);
    }
    const Result<HttpResponse> response =
        exchange_.Send("POST", model_ + "/infer", request_, tensors, patience);
    if (!response) return Forward(response);
    object root;
    if (Status read = ReadJson(*response, response->json_bytes.value_or(response->bytes), &root, patience);
        !read)
      return read;
    array list;
    if (root["outputs"].get(list) != SUCCESS) return StrangeJson("there is no list 'outputs'");
    std::uint64_t bytes = 0;
    for (const element one : list) {
      AnsweredTensor& output = outputs->emplace_back();
      object fields, parameters;
      if (Status read = ReadJsonTensor(one, &fields, &output); !read) return read;
      std::string_view region;
      if (fields["parameters"].get(parameters) == SUCCESS) {
        output.in_region = parameters["shared_memory_region"].get(region) == SUCCESS;
        if (!output.in_region && parameters["binary_data_size"].get(output.bytes) == SUCCESS) {
          bytes += output.bytes;
          continue;
        }
      }
      if (!output.in_region) return StrangeJson("an output is not binary data, as was asked for");
    }
    return bytes == exchange_.left() ? Status() : StrangeJson("the bytes behind it are others than it says");
  }

  Status Receive(const std::vector<Span<std::byte>>& places, const Patience& patience) override {
    for (const Span<std::byte> place : places) {
      if (Status read = exchange_.Read(place, patience); !read) return read;
    }
    return {};
  }

  Status RegisterRegion(const std::string& name, const std::string& key, std::uint64_t bytes,
                        const Patience& patience) override {
    std::string text;
    JsonText(&text)
        .Begin('{')
        .Key("key")
        .String(key)
        .Key("offset")
        .Number(std::uint64_t{0})
        .Key("byte_size")
        .Number(bytes)
        .End('}');
    object root;
    return Ask("POST", RegionPath(name) + "/register", text, &root, patience);
  }
  Status UnregisterRegion(const std::string& name, const Patience& patience) override {
    object root;
    return Ask("POST", RegionPath(name) + "/unregister", {}, &root, patience);
  }

  bool usable() const override { return exchange_.usable(); }
  bool nothing_arrived() const override { return exchange_.nothing_arrived(); }

 private:
  static std::string RegionPath(const std::string& name) {
    return "/v2/systemsharedmemory/region/" + PercentEncoded(name, IsPlainInPath);
  }

  // A call that is answered by JSON alone.
  Status Ask(std::string_view method, const std::string& path, std::string_view text, object* root,
             const Patience& patience) {
    const Result<HttpResponse> response = exchange_.Send(method, path, text, {}, patience);
    if (!response) return Forward(response);
    return ReadJson(*response, response->bytes, root, patience);
  }

  // Receives the JSON of a response. An error of the server becomes one here.
  Status ReadJson(const HttpResponse& response, std::uint64_t size, object* root, const Patience& patience) {
    if (size > kMostJson) return StrangeJson("it is too long");
    answer_.resize(size);
    if (Status read =
            exchange_.Read({reinterpret_cast<std::byte*>(answer_.data()), answer_.size()}, patience);
        !read)
      return read;
    const bool good = response.status == 200;
    if (answer_.empty() && good) return {};
    const bool is_object = parser_.parse(answer_).get(*root) == SUCCESS;
    if (good) return is_object ? Status() : StrangeJson("it is no object");
    std::string_view message;
    if (!is_object || (*root)["error"].get(message) != SUCCESS) message = "no reason is given";
    return Fail(CodeOfHttp(response.status), "the server answers with status {}: {}", response.status,
                message);
  }

  static void WritePlace(const RegionPlace& place, std::uint64_t bytes, JsonText* json) {
    json->Key("shared_memory_region").String(place.region);
    json->Key("shared_memory_offset").Number(place.offset).Key("shared_memory_byte_size").Number(bytes);
  }

  void WriteRequest(const InferCall& call) {
    request_.clear();
    JsonText json(&request_);
    json.Begin('{').Key("inputs").Begin('[');
    for (const SentTensor& input : call.inputs) {
      json.Begin('{').Key("name").String(input.tensor->name);
      json.Key("datatype").String(WireName(input.tensor->dtype)).Key("shape");
      json.Numbers({input.shape.begin(), input.shape.end()}).Key("parameters").Begin('{');
      if (input.place.region.empty()) {
        json.Key("binary_data_size").Number(std::uint64_t{input.bytes.size()});
      } else {
        WritePlace(input.place, input.bytes.size(), &json);
      }
      json.End('}').End('}');
    }
    json.End(']').Key("outputs").Begin('[');
    for (const WantedTensor& output : call.outputs) {
      json.Begin('{').Key("name").String(output.tensor->name).Key("parameters").Begin('{');
      if (output.place.region.empty()) {
        json.Key("binary_data").Bool(true);
      } else {
        WritePlace(output.place, output.bytes, &json);
      }
      json.End('}').End('}');
    }
    json.End(']').End('}');
  }

  HttpExchange exchange_;
  std::string model_;  // the path of the model
  std::string request_, answer_;
  simdjson::dom::parser parser_;
};

}  // namespace

Result<std::unique_ptr<Channel>> OpenHttpChannel(const RemoteUrl& url, const Patience& patience) {
  Result<ClientSocket> socket = ClientSocket::Connect(url, "http/1.1", patience);
  if (!socket) return Forward(socket);
  return std::unique_ptr<Channel>(std::make_unique<HttpChannel>(*std::move(socket), url));
}

}  // namespace rewire::serve
