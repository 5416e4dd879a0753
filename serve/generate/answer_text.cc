// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/answer_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace rewire::serve {
namespace {

constexpr std::size_t kBefore = 5;
constexpr std::string_view kIncomplete = "\xef\xbf\xbd";  // U+FFFD

// The most bytes at the end of `text` that `word` begins with, but not all of the word.
std::size_t CommonBytes(std::string_view text, std::string_view word) {
  for (std::size_t size = std::min(text.size(), word.size() - 1); size > 0; --size) {
    if (text.substr(text.size() - size) == word.substr(0, size)) return size;
  }
  return 0;
}

}  // namespace

AnswerText::AnswerText(std::shared_ptr<const Tokenizer> tokenizer, Span<const std::int64_t> prompt,
                       std::vector<std::string> stop)
    : tokenizer_(std::move(tokenizer)),
      stop_(std::move(stop)),
      before_(std::min(prompt.size(), kBefore)),
      read_(before_) {
  const Span<const std::int64_t> last = prompt.subspan(prompt.size() - before_);
  tokens_.assign(last.begin(), last.end());
}

Status AnswerText::Read(bool is_last) {
  const Span<const std::int64_t> all(tokens_.data(), tokens_.size());
  const Result<std::string> known = tokenizer_->Decode(all.subspan(begin_, read_ - begin_));
  if (!known) return Forward(known);
  const Result<std::string> text = tokenizer_->Decode(all.subspan(begin_));
  if (!text) return Forward(text);
  const bool whole = text->size() < kIncomplete.size() ||
                     text->compare(text->size() - kIncomplete.size(), kIncomplete.size(), kIncomplete) != 0;
  if (text->size() <= known->size() || (!whole && !is_last)) return {};
  pending_ += text->substr(known->size());
  // Spaces in front of everything are left out of a text, so the first of these tokens must say more.
  const Result<std::string> further = tokenizer_->Decode(all.subspan(read_));
  if (!further) return Forward(further);
  if (further->find_first_not_of(' ') != std::string::npos) begin_ = read_;
  read_ = tokens_.size();
  return {};
}

Result<std::string> AnswerText::Take(Span<const std::int64_t> made, bool is_last) {
  if (stopped_) return std::string();
  const Span<const std::int64_t> further = made.subspan(tokens_.size() - before_);
  tokens_.insert(tokens_.end(), further.begin(), further.end());
  if (Status read = Read(is_last); !read) return Forward(read);
  std::size_t end = std::string::npos;
  std::size_t kept = 0;
  for (const std::string& stop : stop_) {
    end = std::min(end, pending_.find(stop));
    kept = std::max(kept, CommonBytes(pending_, stop));
  }
  stopped_ = end != std::string::npos;
  if (!stopped_) end = pending_.size() - (is_last ? 0 : kept);
  std::string text = pending_.substr(0, end);
  pending_.erase(0, end);
  return text;
}

}  // namespace rewire::serve
