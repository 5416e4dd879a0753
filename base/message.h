// SPDX-License-Identifier: Apache-2.0
// Messages put together from pieces, in one call.
//
// A chain of std::string additions leaves a temporary, its destructor and the code to unwind it behind every
// '+', at every place that words an error. Here such a place lays down pointers and numbers and makes one
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/export.h"

namespace rewire {

// A text, which it borrows, or an integer (C enums too), shown in decimal.
class Piece {
 public:
  Piece(const char* text) : Piece(std::string_view(text)) {}
  Piece(const std::string& text) : Piece(std::string_view(text)) {}
  Piece(std::string_view text) : text_(text.data()), size_(text.size()) {}
  template <typename Integer,
            typename = std::enable_if_t<std::is_integral_v<Integer> || std::is_enum_v<Integer>>>
  Piece(Integer number)
      : number_(static_cast<std::uint64_t>(number)),
        size_(std::is_signed_v<Integer> ? kSignedNumber : kUnsignedNumber) {
    static_assert(std::is_convertible_v<Integer, std::uint64_t> && !std::is_same_v<Integer, bool> &&
                      !std::is_same_v<Integer, char>,
                  "no number");
  }

  void AppendTo(std::string* text) const;

 private:
  // Sizes that no text has.
  static constexpr std::size_t kSignedNumber = SIZE_MAX;
  static constexpr std::size_t kUnsignedNumber = SIZE_MAX - 1;

  union {
    const char* text_;
    std::uint64_t number_;
  };
  std::size_t size_;
};

// The pieces one after another.
REWIRE_API std::string Concat(std::initializer_list<Piece> pieces);

// A parameter for the words of an error: one text, or pieces in braces. For the length of the call only.
class Message {
 public:
  Message(std::initializer_list<Piece> pieces)
      : single_(""), pieces_(std::data(pieces)), count_(pieces.size()) {}
  template <typename Text, typename = std::enable_if_t<std::is_convertible_v<const Text&, std::string_view>>>
  Message(const Text& text) : single_(text), pieces_(nullptr), count_(0) {}

  REWIRE_API std::string Text() const;

 private:
  Piece single_;
  const Piece* pieces_;
  std::size_t count_;
};

}  // namespace rewire
