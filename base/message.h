// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/message.h>.
//
// Message: an error text with placeholders, such as "rank {} given, 0 to {} expected", and its arguments.
//
// Hundreds of places in the code build an error message, so each of them has to be small. Such a place passes
// the text and one machine word per "{}", in registers; the kinds of the words are one constant. One shared
// function formats the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "rewire/base/export.h"

namespace rewire {

class Message;

// How arguments are passed to a message: each as one machine word with a kind.
namespace message_internal {

// A number, or the address of a text.
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

// The constants that a call site passes besides its arguments, in two registers: the text, and the kinds of
// its arguments (the first one in the lowest bits). Below the kinds is a number for the callee, such as a
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

// Has no definition on purpose: when a constant expression calls it, the compiler's error shows its name.
void AMessageNeedsOneArgumentForEachPlace();

}  // namespace message_internal

// The text of a message with kCount placeholders "{}". C++20 compilers check the count.
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

// The parameter type for an error text: either one text, or in braces a text with placeholders and its
// arguments, as in {"kernel {}", index}.
//
// The text is formatted only when something fails, so passing a Message costs almost nothing. A Message
// refers to its arguments, which must live as long as it does.
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
  // Instantiated once for each number of arguments.
  template <typename... Words>
  [[gnu::noinline]] Message(message_internal::Layout layout, Words... words)
      : format_(layout.format), kinds_(layout.kinds()), words_{words...} {}

  std::string Text() const;
  // Appends the formatted text to `text`.
  void AppendTo(std::string* text) const;

 private:
  const char* format_;
  unsigned kinds_;
  message_internal::Word words_[message_internal::kMaxWords];
};

namespace message_internal {
// Instantiated once for each number of arguments.
template <typename... Words>
[[gnu::noinline]] std::string FormatWords(Layout layout, Words... words) {
  return Message(layout, words...).Text();
}
}  // namespace message_internal

// Appends a formatted message to `text`: Append(&text, {"{} bytes", count}).
inline void Append(std::string* text, const Message& message) { message.AppendTo(text); }

// Formats a text with placeholders "{}". Arguments are texts or integers.
template <typename... Args>
std::string Format(MessageFormat<sizeof...(Args)> format, const Args&... args) {
  return message_internal::FormatWords({format.text(), message_internal::TagAndKinds<Args...>(0)},
                                       message_internal::WordOf(args)...);
}

}  // namespace rewire
