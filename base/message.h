// SPDX-License-Identifier: Apache-2.0
// Messages from a text with places, "rank {} given, 0 to {} expected", and what stands there.
//
// Hundreds of places word an error, and what each of them costs is multiplied by their number. So such a
// place hands over the text and one machine word for every "{}", in registers; what the words are is one
// constant. The rest, std::string included, is in one function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/export.h"

namespace rewire {

class Message;

// The words that a message is made of: how a caller's arguments are handed to it.
namespace message_internal {

// A number, or where a text lies.
using Word = std::uint64_t;

enum WordKind : unsigned {
  kEnd = 0,
  kChars = 1,
  kString = 2,
  kView = 3,
  kSigned = 4,
  kUnsigned = 5,
  kMessage = 6
};
inline constexpr unsigned kKindBits = 3;
inline constexpr unsigned kTagBits = 5;
inline constexpr std::size_t kMaxWords = 9;  // (32 - kTagBits) / kKindBits

template <typename T>
constexpr unsigned KindOf() {
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    static_assert(std::is_convertible_v<T, Word> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>,
                  "no number");
    return std::is_signed_v<T> ? kSigned : kUnsigned;
  } else if constexpr (std::is_convertible_v<const T&, const char*>) {
    return kChars;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return kString;
  } else if constexpr (std::is_same_v<T, Message>) {
    return kMessage;
  } else {
    static_assert(std::is_same_v<T, std::string_view>, "a message shows texts and integers");
    return kView;
  }
}

template <typename T>
Word WordOf(const T& argument) {
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<Word>(argument);
  } else if constexpr (std::is_convertible_v<const T&, const char*>) {
    return reinterpret_cast<Word>(static_cast<const char*>(argument));
  } else {
    return reinterpret_cast<Word>(&argument);
  }
}

// What a place in the code gives besides its arguments, as constants in two registers: the text, the kinds of
// what stands in its places, the first one lowest, and below them a number of the callee's own, as a
// StatusCode.
struct Layout {
  const char* format;
  unsigned tag_and_kinds;

  unsigned tag() const { return tag_and_kinds & ((1U << kTagBits) - 1); }
  unsigned kinds() const { return tag_and_kinds >> kTagBits; }
};

template <typename... Args>
constexpr unsigned TagAndKinds(unsigned tag) {
  static_assert(sizeof...(Args) <= kMaxWords, "a message shows at most kMaxWords arguments");
  unsigned shift = kTagBits;
  ((tag |= KindOf<Args>() << shift, shift += kKindBits), ...);
  return tag;
}

// Undefined on purpose: calling it while compiling is the error message.
void AMessageNeedsOneArgumentForEachPlace();

}  // namespace message_internal

// The text of a message with kCount places "{}"; counted when a C++20 compiler sees the text.
template <std::size_t kCount>
class MessageFormat {
 public:
#if defined(__cpp_consteval)
  consteval
#else
  constexpr
#endif
      MessageFormat(const char* text)
      : text_(text) {
#if defined(__cpp_consteval)
    std::size_t places = 0;
    for (; *text != '\0'; ++text) {
      if (text[0] == '{' && text[1] == '}') ++places;
    }
    if (places != kCount) message_internal::AMessageNeedsOneArgumentForEachPlace();
#endif
  }
  const char* text() const { return text_; }

 private:
  const char* text_;
};

// A parameter for the words of an error: one text, or in braces a text with places and what stands there. A
// text is only made of it where something fails, so saying what is being looked at, {"kernel {}", index},
// costs next to nothing. It refers to its arguments: for the length of the call, or as a local variable for
// as long as they live.
class REWIRE_API Message {
 public:
  Message(const char* text) : format_(text), kinds_(0) {}
  Message(const std::string& text)
      : Message(message_internal::Layout{"{}", message_internal::TagAndKinds<std::string>(0)},
                message_internal::WordOf(text)) {}
  template <typename First, typename... Rest>
  Message(MessageFormat<1 + sizeof...(Rest)> format, const First& first, const Rest&... rest)
      : Message(message_internal::Layout{format.text(), message_internal::TagAndKinds<First, Rest...>(0)},
                message_internal::WordOf(first), message_internal::WordOf(rest)...) {}
  // One function for each number of arguments.
  template <typename... Words>
  [[gnu::noinline]] Message(message_internal::Layout layout, Words... words)
      : format_(layout.format), kinds_(layout.kinds()), words_{words...} {}

  std::string Text() const;
  // Puts the text behind `text`.
  void AppendTo(std::string* text) const;

 private:
  const char* format_;
  unsigned kinds_;
  message_internal::Word words_[message_internal::kMaxWords];
};

namespace message_internal {
// One function for each number of arguments.
template <typename... Words>
[[gnu::noinline]] std::string FormatWords(Layout layout, Words... words) {
  return Message(layout, words...).Text();
}
}  // namespace message_internal

// The same behind a text that is there: Append(&text, {"{} bytes", count}).
inline void Append(std::string* text, const Message& message) { message.AppendTo(text); }

// "{}: {}" with the arguments, texts or integers, in its places.
template <typename... Args>
std::string Format(MessageFormat<sizeof...(Args)> format, const Args&... args) {
  return message_internal::FormatWords({format.text(), message_internal::TagAndKinds<Args...>(0)},
                                       message_internal::WordOf(args)...);
}

}  // namespace rewire
