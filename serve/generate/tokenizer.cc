// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/tokenizer.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

#include "rewire/serve/sentencepiece/tokenizer_module.h"
#include "rewire/vm/loader/library_search.h"

namespace rewire::serve {
namespace {

constexpr char kModule[] = "librewire_sentencepiece.so";

struct TokenizerModule {
  decltype(&rewire_tokenizer_open) open = nullptr;
  decltype(&rewire_tokenizer_encode) encode = nullptr;
  decltype(&rewire_tokenizer_decode) decode = nullptr;
  decltype(&rewire_tokenizer_free) free = nullptr;
};

template <typename Function>
bool FindTokenizerFunction(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

Result<TokenizerModule> OpenTokenizerModule() {
  std::string tried;
  const std::string path = FindFile(ModuleDirectories(), kModule, &tried);
  if (path.empty()) {
    return Fail(StatusCode::kUnsupported,
                "tokenizers need {}, which is not installed with this server; tried: {}", kModule, tried);
  }
  // In a namespace of its own, with a C++ library of its own. So no symbol of it is taken for one of this
  // process, as could happen among local symbols, too, to those that are unique in a namespace. It stays
  // open.
  void* const library = dlmopen(LM_ID_NEWLM, path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Fail(StatusCode::kUnsupported,
                "tokenizers need SentencePiece (Debian's package libsentencepiece0): {}", dlerror());
  }
  TokenizerModule module;
  if (!FindTokenizerFunction(library, "rewire_tokenizer_open", &module.open) ||
      !FindTokenizerFunction(library, "rewire_tokenizer_encode", &module.encode) ||
      !FindTokenizerFunction(library, "rewire_tokenizer_decode", &module.decode) ||
      !FindTokenizerFunction(library, "rewire_tokenizer_free", &module.free)) {
    return Fail(StatusCode::kUnsupported, "{} is of another version: {}", path, dlerror());
  }
  return module;
}

// Keeps what a call of the module has given.
struct TokenizerAnswer {
  std::string bytes;
  std::string reason;

  static void TakeBytes(void* answer, const void* data, std::size_t size) {
    static_cast<TokenizerAnswer*>(answer)->bytes.assign(static_cast<const char*>(data), size);
  }
  static void TakeReason(void* answer, const void* data, std::size_t size) {
    static_cast<TokenizerAnswer*>(answer)->reason.assign(static_cast<const char*>(data), size);
  }
};

class SentencePieces final : public Tokenizer {
 public:
  SentencePieces(const TokenizerModule& module, RewireTokenizer* tokenizer)
      : module_(module), tokenizer_(tokenizer) {}
  SentencePieces(const SentencePieces&) = delete;
  SentencePieces& operator=(const SentencePieces&) = delete;
  ~SentencePieces() override { module_.free(tokenizer_); }

  Result<std::vector<std::int64_t>> Encode(std::string_view text) const override {
    TokenizerAnswer answer;
    if (module_.encode(tokenizer_, text.data(), text.size(), &TokenizerAnswer::TakeBytes,
                       &TokenizerAnswer::TakeReason, &answer) != 0) {
      return Fail(StatusCode::kInvalidArgument, "the text has no tokens: {}", answer.reason);
    }
    std::vector<std::int64_t> tokens;
    for (std::size_t at = 0; at + sizeof(std::int32_t) <= answer.bytes.size(); at += sizeof(std::int32_t)) {
      std::int32_t token = 0;
      std::memcpy(&token, answer.bytes.data() + at, sizeof(token));
      tokens.push_back(token);
    }
    return tokens;
  }

  Result<std::string> Decode(Span<const std::int64_t> tokens) const override {
    TokenizerAnswer answer;
    if (module_.decode(tokenizer_, tokens.data(), tokens.size(), &TokenizerAnswer::TakeBytes,
                       &TokenizerAnswer::TakeReason, &answer) != 0) {
      return Fail(StatusCode::kRuntimeFailed, "the tokens have no text: {}", answer.reason);
    }
    return std::move(answer.bytes);
  }

 private:
  const TokenizerModule& module_;
  RewireTokenizer* const tokenizer_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> OpenTokenizer(const std::string& path) {
  static const Result<TokenizerModule> module = OpenTokenizerModule();
  if (!module) return Forward(module, path);
  TokenizerAnswer answer;
  RewireTokenizer* const opened = module->open(path.c_str(), &TokenizerAnswer::TakeReason, &answer);
  if (opened == nullptr) {
    return Fail(StatusCode::kInvalidFile, "{}: no model of SentencePiece can be read from it: {}", path,
                answer.reason);
  }
  return std::shared_ptr<const Tokenizer>(std::make_shared<SentencePieces>(*module, opened));
}

}  // namespace rewire::serve
