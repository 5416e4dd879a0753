// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/generate/tokenizer.h"

namespace rewire::serve {

// AnswerText: the text of an answer, while its tokens come. A part is told when nothing can change it any
// more: characters are whole, and it is not the beginning of a text that ends the answer.
class AnswerText {
 public:
  // `stop`: the answer ends in front of the first of these texts, none of which is empty.
  AnswerText(std::shared_ptr<const Tokenizer> tokenizer, Span<const std::int64_t> prompt,
             std::vector<std::string> stop);

  // The further text, for all tokens of the answer until now. `is_last`: no more come. Errors: those of
  // Tokenizer.
  Result<std::string> Take(Span<const std::int64_t> made, bool is_last);
  // A text that ends the answer has come. Take gives nothing more.
  bool stopped() const { return stopped_; }

 private:
  // Appends the text of the tokens that have come since, if its characters are whole.
  Status Read(bool is_last);

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::vector<std::string> stop_;
  std::vector<std::int64_t>
      tokens_;                // the prompt's last ones, because a word goes on behind them, and the answer
  const std::size_t before_;  // how many of them are the prompt's
  std::size_t begin_ = 0;     // the text of tokens from here to read_ is known
  std::size_t read_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace rewire::serve
