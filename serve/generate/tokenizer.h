// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers: from texts to tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire::serve {

// Immutable; any threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Symbols such as the end of a text are not recognized in a text.
  virtual Result<std::vector<std::int64_t>> Encode(std::string_view text) const = 0;
  // Tokens that it does not have are left out. Bytes that are no whole character yet come as U+FFFD.
  virtual Result<std::string> Decode(Span<const std::int64_t> tokens) const = 0;
};

// Opens a model of SentencePiece (https://github.com/google/sentencepiece), and at the first call the module
// that reads it. Errors: kInvalidFile, with the path; kUnsupported if the module or SentencePiece is not
// installed.
Result<std::shared_ptr<const Tokenizer>> OpenTokenizer(const std::string& path);

}  // namespace rewire::serve
