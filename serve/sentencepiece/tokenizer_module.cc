// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/sentencepiece/tokenizer_module.h"

#include <sentencepiece_processor.h>

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct RewireTokenizer {
  sentencepiece::SentencePieceProcessor processor;
};

namespace {

void Tell(std::string_view text, RewireTokenizerSink sink, void* context) {
  sink(context, text.data(), text.size());
}

// Calls work, which returns a Status of SentencePiece. No exception leaves the module: its C++ library is not
// the caller's.
template <typename Work>
bool Succeeds(const Work& work, RewireTokenizerSink reason, void* context) {
  try {
    const sentencepiece::util::Status done = work();
    if (done.ok()) return true;
    Tell(done.ToString(), reason, context);
  } catch (const std::exception& error) {
    Tell(error.what(), reason, context);
  }
  return false;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) RewireTokenizer* rewire_tokenizer_open(const char* path,
                                                                              RewireTokenizerSink reason,
                                                                              void* context) {
  std::unique_ptr<RewireTokenizer> tokenizer;
  const auto load = [&] {
    tokenizer = std::make_unique<RewireTokenizer>();
    return tokenizer->processor.Load(path);
  };
  return Succeeds(load, reason, context) ? tokenizer.release() : nullptr;
}

__attribute__((visibility("default"))) int rewire_tokenizer_encode(const RewireTokenizer* tokenizer,
                                                                   const char* text, size_t size,
                                                                   RewireTokenizerSink tokens,
                                                                   RewireTokenizerSink reason,
                                                                   void* context) {
  std::vector<int> ids;
  const auto encode = [&] { return tokenizer->processor.Encode({text, size}, &ids); };
  if (!Succeeds(encode, reason, context)) return -1;
  static_assert(sizeof(int) == sizeof(int32_t));
  tokens(context, ids.data(), ids.size() * sizeof(int32_t));
  return 0;
}

__attribute__((visibility("default"))) int rewire_tokenizer_decode(const RewireTokenizer* tokenizer,
                                                                   const int64_t* tokens, size_t count,
                                                                   RewireTokenizerSink text,
                                                                   RewireTokenizerSink reason,
                                                                   void* context) {
  std::string decoded;
  const auto decode = [&] {
    std::vector<int> ids;
    for (size_t i = 0; i < count; ++i) {
      const bool known = tokens[i] >= 0 && tokens[i] < tokenizer->processor.GetPieceSize();
      if (known) ids.push_back(static_cast<int>(tokens[i]));
    }
    return tokenizer->processor.Decode(ids, &decoded);
  };
  if (!Succeeds(decode, reason, context)) return -1;
  Tell(decoded, text, context);
  return 0;
}

__attribute__((visibility("default"))) void rewire_tokenizer_free(RewireTokenizer* tokenizer) {
  delete tokenizer;
}

}  // extern "C"
