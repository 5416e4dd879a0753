// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/assert.h>.
//
// REWIRE_ASSERT checks a precondition that a comment states.
//
// It is only for bugs of the caller. Whatever a file, an argument or the system can cause is reported as a
// Status.
//
//   REWIRE_ASSERT(index < size_, "index {} of an array of {} elements", index, size_);
//
// The text and its arguments form a Message (base/message.h). A failed assertion prints the condition, the
// text and the source line to stderr, and then aborts. Assertions are active without NDEBUG, and also with
// REWIRE_ASSERTIONS, which the presets dev, asan-ubsan and tsan define. Otherwise they cost nothing and their
// arguments are not evaluated.
#pragma once

#include "rewire/base/export.h"
#include "rewire/base/message.h"

namespace rewire {

[[noreturn, gnu::cold]] REWIRE_API void AssertionFailed(const char* condition, const char* file, int line,
                                                        const Message& message) noexcept;

}  // namespace rewire

#if !defined(NDEBUG) || defined(REWIRE_ASSERTIONS)
#define REWIRE_ASSERT(condition, ...) \
  ((condition) ? void()               \
               : ::rewire::AssertionFailed(#condition, __FILE__, __LINE__, ::rewire::Message(__VA_ARGS__)))
#else
#define REWIRE_ASSERT(condition, ...) \
  (true ? void() : static_cast<void>(static_cast<bool>(condition) && (::rewire::Message(__VA_ARGS__), true)))
#endif
