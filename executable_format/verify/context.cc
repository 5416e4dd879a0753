// SPDX-License-Identifier: Apache-2.0
#include "executable_format/verify/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "executable_format/instruction_text.h"

namespace rewire::verify {

tl::unexpected<Error> Violation(std::string message) {
  return Fail(StatusCode::kVerificationFailed, std::move(message));
}

tl::unexpected<Error> ViolationAt(const Module& module, const Function& function, std::size_t pc,
                                  const std::string& message) {
  // An instruction may have a million operands; a message should not.
  constexpr std::size_t kLongest = 200;
  std::string text = InstructionText(module, function, pc);
  if (text.size() > kLongest) {
    text.resize(kLongest);
    while (!IsUtf8(text)) text.pop_back();
    text += "...";
  }
  return Violation(fmt::format("{}@{} ({}): {}", function.name, pc, text, message));
}

Status CheckLimit(std::string_view what, std::uint64_t count, std::uint64_t limit) {
  if (count <= limit) return {};
  return Violation(fmt::format("{}: {}, the limit is {}", what, count, limit));
}

Status CheckName(const std::string& what, std::string_view name, const FormatLimits& limits) {
  if (name.empty()) return Violation(what + " has an empty name");
  if (name.size() > limits.name_bytes) {
    return Violation(
        fmt::format("the name of {} has {} bytes, the limit is {}", what, name.size(), limits.name_bytes));
  }
  const bool control = std::any_of(name.begin(), name.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (control || !IsUtf8(name)) return Violation("the name of " + what + " is not printable UTF-8");
  return {};
}

Status CheckText(const std::string& what, std::string_view text, const FormatLimits& limits) {
  if (text.size() > limits.text_bytes) {
    return Violation(fmt::format("{} has {} bytes, the limit is {}", what, text.size(), limits.text_bytes));
  }
  if (!IsUtf8(text)) return Violation(what + " is not UTF-8");
  return {};
}

}  // namespace rewire::verify
