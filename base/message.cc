// SPDX-License-Identifier: Apache-2.0
#include "base/message.h"

#include <charconv>
#include <limits>

namespace rewire {

void Piece::AppendTo(std::string* text) const {
  if (size_ < kUnsignedNumber) {
    text->append(text_, size_);
    return;
  }
  char digits[std::numeric_limits<std::uint64_t>::digits10 + 2];
  const std::to_chars_result end =
      size_ == kSignedNumber
          ? std::to_chars(std::begin(digits), std::end(digits), static_cast<std::int64_t>(number_))
          : std::to_chars(std::begin(digits), std::end(digits), number_);
  text->append(digits, end.ptr);
}

std::string Message::Text() const {
  std::string text;
  if (count_ == 0) single_.AppendTo(&text);
  for (std::size_t i = 0; i < count_; ++i) pieces_[i].AppendTo(&text);
  return text;
}

std::string Concat(std::initializer_list<Piece> pieces) { return Message(pieces).Text(); }

}  // namespace rewire
