// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/sandbox/sandbox_message.h"

#include <type_traits>
#include <utility>

#include "rewire/base/byte_reader.h"
#include "rewire/base/max_rank.h"

namespace rewire::serve {
namespace {

class Encoder {
 public:
  explicit Encoder(SandboxKind kind) { Put(kind); }
  template <typename T>
  Encoder& Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Encoder& Text(std::string_view text) {
    Put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  Encoder& Numbers(const std::vector<std::int64_t>& numbers) {
    Put(static_cast<std::uint32_t>(numbers.size()));
    for (const std::int64_t number : numbers) Put(number);
    return *this;
  }
  Encoder& Tensors(const std::vector<SandboxTensor>& tensors) {
    Put(static_cast<std::uint32_t>(tensors.size()));
    for (const SandboxTensor& tensor : tensors) Numbers(tensor.shape).Put(tensor.offset).Put(tensor.bytes);
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view message)
      : reader_({reinterpret_cast<const std::byte*>(message.data()), message.size()}) {}
  // Begins to read a message, which must be of this kind.
  Status Begin(SandboxKind kind) {
    const auto found = Get<SandboxKind>();
    if (found == kind && reader_.ok()) return {};
    if (found != SandboxKind::kFailed)
      return Fail(StatusCode::kInvalidFile, "the message is of another kind");
    const auto code = Get<std::uint8_t>();
    const std::string text = Text();
    if (!reader_.ok() || code == 0 || code > static_cast<std::uint8_t>(StatusCode::kInternal))
      return Fail(StatusCode::kInvalidFile, "the message of an error is damaged");
    return Fail(static_cast<StatusCode>(code), "{}", text);
  }
  template <typename T>
  T Get() {
    return reader_.Read<T>();
  }
  std::string Text() { return std::string(reader_.ReadString(Get<std::uint32_t>())); }
  std::size_t Count(std::size_t element_bytes) { return reader_.ReadCount<std::uint32_t>(element_bytes); }
  std::vector<std::int64_t> Shape() {
    std::vector<std::int64_t> shape(Count(sizeof(std::int64_t)));
    for (std::int64_t& dim : shape) dim = Get<std::int64_t>();
    too_many_ |= shape.size() > kMaxRank;
    return shape;
  }
  std::vector<SandboxTensor> Tensors() {
    std::vector<SandboxTensor> tensors(Count(20));
    for (SandboxTensor& tensor : tensors) {
      tensor.shape = Shape();
      tensor.offset = Get<std::uint64_t>();
      tensor.bytes = Get<std::uint64_t>();
    }
    return tensors;
  }
  std::vector<RemoteTensor> Descriptions() {
    std::vector<RemoteTensor> tensors(Count(15));
    for (RemoteTensor& tensor : tensors) {
      tensor.name = Text();
      tensor.dtype.code = Get<std::uint8_t>();
      tensor.dtype.bits = Get<std::uint8_t>();
      tensor.dtype.lanes = Get<std::uint16_t>();
      tensor.shape = Shape();
      tensor.dims = Text();
    }
    return tensors;
  }
  // Whether the message had all that was read, and no more.
  Status End() const {
    if (reader_.ok() && reader_.remaining() == 0 && !too_many_) return {};
    return Fail(StatusCode::kInvalidFile, "the message is damaged");
  }

 private:
  ByteReader reader_;
  bool too_many_ = false;
};

// Reads the rest of a message of this kind.
template <typename T, typename Read>
Result<T> Decode(std::string_view message, SandboxKind kind, const Read& read) {
  Decoder decoder(message);
  if (Status begun = decoder.Begin(kind); !begun) return Forward(begun);
  T value = read(&decoder);
  if (Status ended = decoder.End(); !ended) return Forward(ended);
  return value;
}

void PutDescriptions(const std::vector<RemoteTensor>& tensors, Encoder* encoder) {
  encoder->Put(static_cast<std::uint32_t>(tensors.size()));
  for (const RemoteTensor& tensor : tensors) {
    encoder->Text(tensor.name).Put(tensor.dtype.code).Put(tensor.dtype.bits).Put(tensor.dtype.lanes);
    encoder->Numbers(tensor.shape).Text(tensor.dims);
  }
}

}  // namespace

std::string EncodeReady(const RemoteSignature& signature) {
  Encoder encoder(SandboxKind::kReady);
  PutDescriptions(signature.inputs, &encoder);
  PutDescriptions(signature.outputs, &encoder);
  return encoder.Take();
}

std::string EncodeFailed(const Error& error) {
  const std::string text = error.message();
  return Encoder(SandboxKind::kFailed)
      .Put(static_cast<std::uint8_t>(error.code()))
      .Text(std::string_view(text).substr(0, kMostMessageBytes / 2))
      .Take();
}

std::string EncodeRun(const SandboxRun& run) {
  return Encoder(SandboxKind::kRun).Put(run.memory_bytes).Tensors(run.inputs).Tensors(run.outputs).Take();
}

std::string EncodeDone(const std::vector<SandboxTensor>& outputs) {
  return Encoder(SandboxKind::kDone).Tensors(outputs).Take();
}

std::string EncodeFetch(const SandboxFetch& fetch) {
  Encoder encoder(SandboxKind::kFetch);
  encoder.Put(fetch.memory_bytes).Put(static_cast<std::uint32_t>(fetch.offsets.size()));
  for (const std::uint64_t offset : fetch.offsets) encoder.Put(offset);
  return encoder.Take();
}

std::string EncodeCompiled(std::uint64_t bytes) { return Encoder(SandboxKind::kCompiled).Put(bytes).Take(); }

Result<RemoteSignature> DecodeReady(std::string_view message) {
  return Decode<RemoteSignature>(message, SandboxKind::kReady, [](Decoder* decoder) {
    RemoteSignature signature;
    signature.inputs = decoder->Descriptions();
    signature.outputs = decoder->Descriptions();
    return signature;
  });
}

Result<SandboxRun> DecodeRun(std::string_view message) {
  return Decode<SandboxRun>(message, SandboxKind::kRun, [](Decoder* decoder) {
    SandboxRun run;
    run.memory_bytes = decoder->Get<std::uint64_t>();
    run.inputs = decoder->Tensors();
    run.outputs = decoder->Tensors();
    return run;
  });
}

Result<std::vector<SandboxTensor>> DecodeDone(std::string_view message) {
  return Decode<std::vector<SandboxTensor>>(message, SandboxKind::kDone,
                                            [](Decoder* decoder) { return decoder->Tensors(); });
}

Result<SandboxFetch> DecodeFetch(std::string_view message) {
  return Decode<SandboxFetch>(message, SandboxKind::kFetch, [](Decoder* decoder) {
    SandboxFetch fetch;
    fetch.memory_bytes = decoder->Get<std::uint64_t>();
    fetch.offsets.resize(decoder->Count(sizeof(std::uint64_t)));
    for (std::uint64_t& offset : fetch.offsets) offset = decoder->Get<std::uint64_t>();
    return fetch;
  });
}

Result<std::uint64_t> DecodeCompiled(std::string_view message) {
  return Decode<std::uint64_t>(message, SandboxKind::kCompiled,
                               [](Decoder* decoder) { return decoder->Get<std::uint64_t>(); });
}

SandboxKind KindOf(std::string_view message) {
  return message.empty() ? SandboxKind::kFailed : static_cast<SandboxKind>(message.front());
}

}  // namespace rewire::serve
