// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/types.h"

#include <algorithm>
#include <utility>

#include "rewire/executable_format/types.h"
#include "rewire/serve/client/grpc_exchange.h"
#include "rewire/serve/core/dim_names.h"
#include "rewire/serve/core/text_bytes.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/grpc/protobuf_wire.h"

namespace rewire::serve {
namespace {

constexpr std::uint64_t kRawOutputs = 6;  // the field of ModelInferResponse
constexpr std::uint64_t kMostHead = std::uint64_t{16} << 20;

Status StrangeMessage(const char* what) {
  return Fail(StatusCode::kUnsupported, "the server's message is not of the Open Inference Protocol: {}",
              what);
}

Status ReadMessageShape(const WireReader& field, std::vector<std::int64_t>* shape) {
  if (field.type() == WireType::kVarint) {
    shape->push_back(field.integer());
    return {};
  }
  std::string_view rest = field.bytes();
  while (!rest.empty()) {
    std::uint64_t size = 0;
    if (!WireReader::TakeVarint(&rest, &size)) return StrangeMessage("a damaged shape");
    shape->push_back(static_cast<std::int64_t>(size));
  }
  return {};
}

// Name, datatype and shape, the first three fields of a tensor in answers and in descriptions.
template <typename Tensor>
Status ReadMessageTensor(std::string_view message, Tensor* tensor) {
  std::string_view datatype;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) tensor->name = reader.bytes();
    if (reader.Is(2, WireType::kBytes)) datatype = reader.bytes();
    if (reader.field() == 3) {
      if (Status read = ReadMessageShape(reader, &tensor->shape); !read) return read;
    }
  }
  if (reader.malformed()) return StrangeMessage("a damaged tensor");
  const std::optional<DLDataType> dtype = ParseWireName(datatype);
  if (!dtype)
    return Fail(StatusCode::kUnsupported, "tensor '{}' has elements of {}, which a program cannot have",
                tensor->name, datatype);
  tensor->dtype = *dtype;
  return {};
}

// The message of an entry of a map, and its key.
std::pair<std::string_view, std::string_view> EntryOf(std::string_view entry) {
  std::pair<std::string_view, std::string_view> found;
  WireReader reader(entry);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) found.first = reader.bytes();
    if (reader.Is(2, WireType::kBytes)) found.second = reader.bytes();
  }
  return found;
}

// Takes the names of dimensions out of a parameter of a model's configuration.
void ReadMessageDims(std::string_view entry, RemoteSignature* signature) {
  const auto [key, message] = EntryOf(entry);
  std::string_view text;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) text = reader.bytes();
  }
  const auto give = [&, key = key](std::string_view prefix, std::vector<RemoteTensor>* tensors) {
    for (RemoteTensor& tensor : *tensors) {
      if (key == std::string(prefix) + tensor.name) tensor.dims = text;
    }
  };
  give(kInputDims, &signature->inputs);
  give(kOutputDims, &signature->outputs);
}

void WritePlace(const RegionPlace& place, std::uint64_t bytes, std::uint32_t field, WireWriter* tensor) {
  tensor->Entry(field, "shared_memory_region",
                [&](WireWriter* value) { value->AlwaysText(3, place.region); });
  tensor->Entry(field, "shared_memory_offset",
                [&](WireWriter* value) { value->AlwaysNumber(2, place.offset); });
  tensor->Entry(field, "shared_memory_byte_size", [&](WireWriter* value) { value->AlwaysNumber(2, bytes); });
}

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(ClientSocket socket, const RemoteUrl& url)
      : exchange_(std::move(socket), url.Authority(), url.token), model_(url.model), version_(url.version) {}

  Result<RemoteSignature> Describe(const Patience& patience) override {
    RemoteSignature signature;
    std::string asked, answer;
    WireWriter(&asked).Text(1, model_).Text(2, version_);
    if (Status done = Ask("ModelMetadata", asked, &answer, patience); !done) return Forward(done);
    WireReader reader(answer);
    while (reader.Next()) {
      Status read;
      if (reader.Is(4, WireType::kBytes))
        read = ReadMessageTensor(reader.bytes(), &signature.inputs.emplace_back());
      if (reader.Is(5, WireType::kBytes))
        read = ReadMessageTensor(reader.bytes(), &signature.outputs.emplace_back());
      if (!read) return Forward(read);
    }
    if (reader.malformed()) return StrangeMessage("a damaged description of the model");
    // Servers without the extension have no configuration.
    if (Status done = Ask("ModelConfig", asked, &answer, patience); !done)
      return usable() ? Result<RemoteSignature>(std::move(signature)) : Forward(done);
    std::string_view config;
    WireReader response(answer);
    while (response.Next()) {
      if (response.Is(1, WireType::kBytes)) config = response.bytes();
    }
    WireReader fields(config);
    while (fields.Next()) {
      if (fields.Is(14, WireType::kBytes)) ReadMessageDims(fields.bytes(), &signature);
    }
    return signature;
  }

  Status Begin(const InferCall& call, std::vector<AnsweredTensor>* outputs,
               const Patience& patience) override {
    std::vector<std::string> heads;
    const std::vector<Span<const std::byte>> message = WriteRequest(call, &heads);
    if (Status begun = exchange_.Begin("ModelInfer", message, patience); !begun) return begun;
    if (Status read = ReadPrefix(patience); !read) return read;
    has_contents_ = false;
    while (left_ > 0 && !has_contents_) {
      std::uint64_t tag = 0;
      if (Status read = ReadVarint(&tag, patience); !read) return read;
      if (tag == (kRawOutputs << 3 | 2)) {
        has_contents_ = true;
        break;
      }
      if ((tag & 7) != 2) return StrangeMessage("an unexpected field of an answer");
      if (Status read = ReadText(&text_, patience); !read) return read;
      if (tag >> 3 != 5) continue;
      AnsweredTensor& output = outputs->emplace_back();
      if (Status read = ReadMessageTensor(text_, &output); !read) return read;
      ReadRegion(text_, &output);
      if (output.in_region) continue;
      const std::optional<std::uint64_t> bytes =
          TensorBytes(output.dtype, {output.shape.data(), output.shape.size()});
      if (!bytes) return StrangeMessage("a shape that no tensor has");
      output.bytes = *bytes;
    }
    return {};
  }

  Status Receive(const std::vector<Span<std::byte>>& places, const Patience& patience) override {
    for (const Span<std::byte> place : places) {
      if (!has_contents_) {
        // A last output in a region may have no contents at all.
        if (left_ == 0 && place.empty()) continue;
        std::uint64_t tag = 0;
        if (Status read = ReadVarint(&tag, patience); !read) return read;
        if (tag != (kRawOutputs << 3 | 2)) return StrangeMessage("an output without raw_output_contents");
      }
      has_contents_ = false;
      std::uint64_t size = 0;
      if (Status read = ReadVarint(&size, patience); !read) return read;
      if (size != place.size()) {
        return Fail(StatusCode::kUnsupported, "the server's output has {} bytes, and {} are expected", size,
                    place.size());
      }
      if (Status read = ReadBytes(place, patience); !read) return read;
    }
    // A later version of the protocol may add fields.
    while (left_ > 0) {
      std::byte rest[256];
      if (Status read = ReadBytes({rest, std::min<std::size_t>(left_, sizeof rest)}, patience); !read)
        return read;
    }
    return exchange_.End(patience);
  }

  Status RegisterRegion(const std::string& name, const std::string& key, std::uint64_t bytes,
                        const Patience& patience) override {
    std::string asked, answer;
    WireWriter(&asked).Text(1, name).Text(2, key).Number(4, bytes);
    return Ask("SystemSharedMemoryRegister", asked, &answer, patience);
  }
  Status UnregisterRegion(const std::string& name, const Patience& patience) override {
    std::string asked, answer;
    WireWriter(&asked).Text(1, name);
    return Ask("SystemSharedMemoryUnregister", asked, &answer, patience);
  }

  bool usable() const override { return exchange_.usable(); }
  bool nothing_arrived() const override { return exchange_.nothing_arrived(); }

 private:
  // A call whose message and answer are small.
  Status Ask(std::string_view method, std::string_view message, std::string* answer,
             const Patience& patience) {
    if (Status begun = exchange_.Begin(method, {AsBytes(message)}, patience); !begun) return begun;
    if (Status read = ReadPrefix(patience); !read) return read;
    if (left_ > kMostHead) return StrangeMessage("it is too long");
    answer->resize(left_);
    if (Status read = ReadBytes({reinterpret_cast<std::byte*>(answer->data()), answer->size()}, patience);
        !read)
      return read;
    return exchange_.End(patience);
  }

  // Reads the prefix of a message: whether it is compressed, and its size.
  Status ReadPrefix(const Patience& patience) {
    std::byte prefix[5];
    left_ = sizeof prefix;
    if (Status read = ReadBytes({prefix, sizeof prefix}, patience); !read) return read;
    if (prefix[0] != std::byte{0}) return StrangeMessage("it is compressed");
    for (std::size_t i = 1; i < sizeof prefix; ++i)
      left_ = left_ << 8 | std::to_integer<std::uint64_t>(prefix[i]);
    return {};
  }
  Status ReadBytes(Span<std::byte> to, const Patience& patience) {
    if (to.size() > left_) return StrangeMessage("a field that is longer than its message");
    left_ -= to.size();
    return exchange_.Read(to, patience);
  }
  Status ReadVarint(std::uint64_t* value, const Patience& patience) {
    char bytes[10];
    for (std::size_t i = 0; i < sizeof bytes; ++i) {
      if (Status read = ReadBytes({reinterpret_cast<std::byte*>(bytes + i), 1}, patience); !read) return read;
      if ((static_cast<std::uint8_t>(bytes[i]) & 0x80) != 0) continue;
      std::string_view text(bytes, i + 1);
      return WireReader::TakeVarint(&text, value) ? Status() : StrangeMessage("a damaged number");
    }
    return StrangeMessage("a damaged number");
  }
  Status ReadText(std::string* text, const Patience& patience) {
    std::uint64_t size = 0;
    if (Status read = ReadVarint(&size, patience); !read) return read;
    if (size > kMostHead) return StrangeMessage("a field that is too long");
    text->resize(size);
    return ReadBytes({reinterpret_cast<std::byte*>(text->data()), text->size()}, patience);
  }

  static void ReadRegion(std::string_view message, AnsweredTensor* output) {
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.Is(4, WireType::kBytes) && EntryOf(reader.bytes()).first == "shared_memory_region")
        output->in_region = true;
    }
  }
  // A ModelInferRequest as parts that follow each other. `heads` keeps those that are no tensors.
  std::vector<Span<const std::byte>> WriteRequest(const InferCall& call, std::vector<std::string>* heads) {
    request_.clear();
    WireWriter writer(&request_);
    writer.Text(1, model_).Text(2, version_);
    for (const SentTensor& input : call.inputs) {
      writer.Message(5, [&](WireWriter* tensor) {
        tensor->Text(1, input.tensor->name).Text(2, WireName(input.tensor->dtype)).Packed(3, input.shape);
        if (!input.place.region.empty()) WritePlace(input.place, input.bytes.size(), 4, tensor);
      });
    }
    for (const WantedTensor& output : call.outputs) {
      writer.Message(6, [&](WireWriter* tensor) {
        tensor->Text(1, output.tensor->name);
        if (!output.place.region.empty()) WritePlace(output.place, output.bytes, 2, tensor);
      });
    }
    heads->reserve(call.inputs.size());
    std::vector<Span<const std::byte>> parts = {AsBytes(request_)};
    for (const SentTensor& input : call.inputs) {
      if (!input.place.region.empty()) continue;
      WireWriter(&heads->emplace_back()).Head(7, input.bytes.size());
      parts.push_back(AsBytes(heads->back()));
      parts.push_back(input.bytes);
    }
    return parts;
  }

  GrpcExchange exchange_;
  std::string model_, version_;
  std::string request_, text_;
  std::uint64_t left_ = 0;     // bytes of the message
  bool has_contents_ = false;  // the tag of the next contents has been read
};

}  // namespace

Result<std::unique_ptr<Channel>> OpenGrpcChannel(const RemoteUrl& url, const Patience& patience) {
  Result<ClientSocket> socket = ClientSocket::Connect(url, "h2", patience);
  if (!socket) return Forward(socket);
  return std::unique_ptr<Channel>(std::make_unique<GrpcChannel>(*std::move(socket), url));
}

}  // namespace rewire::serve
