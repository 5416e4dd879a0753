// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/generating_service.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/base/utf8.h"

namespace rewire::fuzz {
namespace {

constexpr std::int64_t kEnd = 256;  // behind all bytes
constexpr std::int64_t kVocabulary = kEnd + 1;
constexpr std::int64_t kContext = 48;

class ByteTokenizer final : public serve::Tokenizer {
 public:
  Result<std::vector<std::int64_t>> Encode(std::string_view text) const override {
    if (text.find('\x7f') != std::string_view::npos)
      return Fail(StatusCode::kInvalidArgument, "the text has a character that cannot be encoded");
    std::vector<std::int64_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }

  Result<std::string> Decode(Span<const std::int64_t> tokens) const override {
    std::string bytes;
    for (const std::int64_t token : tokens) {
      if (token < kEnd) bytes += static_cast<char>(token);
    }
    std::string text;
    for (std::size_t at = 0, size = 1; at < bytes.size(); at += size) {
      const std::size_t most = std::min<std::size_t>(4, bytes.size() - at);
      size = 1;
      while (size <= most && !IsUtf8(std::string_view(bytes).substr(at, size))) ++size;
      const bool is_character = size <= most;
      if (!is_character) size = 1;
      text += is_character ? bytes.substr(at, size) : "\uFFFD";
    }
    return text;
  }
};

class Held final : public serve::HeldModel {
 public:
  explicit Held(const serve::Generator& generator) : generator_(generator) {}
  const serve::Generator& generator() const override { return generator_; }
  serve::CacheBlocks FindPrefix(Span<const std::int64_t>) override { return {}; }
  void KeepPrefix(Span<const std::int64_t>, std::size_t, const serve::CacheBlocks&) override {}

 private:
  const serve::Generator& generator_;
};

// All tokens of a step as one number.
std::uint64_t Mixed(Span<const std::byte> tokens) {
  std::uint64_t mixed = 14695981039346656037U;
  for (std::size_t i = 0; i + sizeof(std::int64_t) <= tokens.size(); i += sizeof(std::int64_t)) {
    std::int64_t token = 0;
    std::memcpy(&token, tokens.data() + i, sizeof token);
    mixed = (mixed ^ static_cast<std::uint64_t>(token)) * 1099511628211U;
  }
  return mixed >> 16;
}

}  // namespace

GeneratingService::GeneratingService() {
  generator_.model = "double";
  generator_.version = "1";
  generator_.settings.tokens = "tokens";
  generator_.settings.logits = "logits";
  generator_.settings.end = {kEnd};
  generator_.settings.context = kContext;
  generator_.settings.begin = {'^'};
  generator_.settings.roles = {{"system", "s:"}, {"user", "u:"}, {"assistant", "a:"}};
  generator_.settings.message_end = "\n";
  generator_.tokenizer = std::make_shared<ByteTokenizer>();
  generator_.tokens = {"tokens", kInt64, 2};
  generator_.vocabulary = kVocabulary;
}

Result<std::shared_ptr<serve::HeldModel>> GeneratingService::HoldGenerator(std::string_view model) {
  if (Status ready = CheckReady(model, {}); !ready) return Forward(ready);
  return std::shared_ptr<serve::HeldModel>(std::make_shared<Held>(generator_));
}

void GeneratingService::Answer(serve::Request* request) {
  if (request->held == nullptr) return FakeService::Answer(request);
  ++answered;
  constexpr std::uint64_t kOneFails = 101, kOneHasNoLogits = 103;
  const std::uint64_t mixed = Mixed(request->inputs[0].data);
  if (mixed % kOneFails == 0) {
    request->status = Fail(StatusCode::kKernelFailed, "the step fails");
    return request->Finish();
  }
  constexpr std::size_t kBytes = kVocabulary * sizeof(float);
  std::vector<float> logits(kVocabulary,
                            mixed % kOneHasNoLogits == 0 ? std::numeric_limits<float>::quiet_NaN() : 0);
  // Far above the others, so that the same request takes the same way at any temperature. Letters are usual.
  const std::uint64_t token = mixed % 4 == 0 ? mixed / 4 % kVocabulary : 'a' + mixed / 4 % 4;
  logits[token] += 10000;
  std::byte* const memory = request->memory.Allocate(kBytes);
  std::memcpy(memory, logits.data(), kBytes);
  request->used_model = "double";
  request->used_version = "1";
  request->results.push_back({"logits", kFloat32, {1, kVocabulary}, memory, kBytes, 0});
  request->Finish();
}

}  // namespace rewire::fuzz
