// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/message.h"

#include <charconv>
#include <cstring>
#include <limits>

namespace rewire {
namespace {

void AppendNumber(std::uint64_t number, std::string* text) {
  char digits[std::numeric_limits<std::uint64_t>::digits10 + 2];
  text->append(digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr);
}

void AppendWord(unsigned kind, message_internal::Word word, std::string* text) {
  switch (kind) {
    case message_internal::kChars:
      text->append(reinterpret_cast<const char*>(word));
      break;
    case message_internal::kString:
      text->append(*reinterpret_cast<const std::string*>(word));
      break;
    case message_internal::kView:
      text->append(*reinterpret_cast<const std::string_view*>(word));
      break;
    case message_internal::kMessage:
      reinterpret_cast<const Message*>(word)->AppendTo(text);
      break;
    case message_internal::kSigned:
      if (static_cast<std::int64_t>(word) < 0) {
        text->push_back('-');
        word = 0 - word;
      }
      AppendNumber(word, text);
      break;
    default:
      AppendNumber(word, text);
  }
}

}  // namespace

std::string Message::Text() const {
  std::string text;
  AppendTo(&text);
  return text;
}

void Message::AppendTo(std::string* text) const {
  constexpr unsigned kMask = (1U << message_internal::kKindBits) - 1;
  const char* rest = format_;
  const message_internal::Word* word = words_;
  for (unsigned kinds = kinds_; kinds != 0; kinds >>= message_internal::kKindBits) {
    const char* place = std::strstr(rest, "{}");
    text->append(rest, place);
    AppendWord(kinds & kMask, *word++, text);
    rest = place + 2;
  }
  text->append(rest);
}

}  // namespace rewire
