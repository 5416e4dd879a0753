// SPDX-License-Identifier: Apache-2.0
#include "executable_format/verify/context.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "executable_format/instruction_text.h"

namespace rewire::verify {

tl::unexpected<Error> Violation(const Message& message) {
  return Fail(StatusCode::kVerificationFailed, message);
}

tl::unexpected<Error> ViolationAt(const Module& module, const Function& function, std::size_t pc,
                                  const Message& message) {
  // An instruction may have a million operands; a message should not.
  constexpr std::size_t kLongest = 200;
  std::string text = InstructionText(module, function, pc);
  if (text.size() > kLongest) {
    text.resize(kLongest);
    while (!IsUtf8(text)) text.pop_back();
    text += "...";
  }
  return Violation({function.name, "@", pc, " (", text, "): ", message.Text()});
}

Status CheckLimit(std::string_view what, std::uint64_t count, std::uint64_t limit) {
  if (count <= limit) return {};
  return Violation({what, ": ", count, ", the limit is ", limit});
}

Status CheckName(const std::string& what, std::string_view name, const FormatLimits& limits) {
  if (name.empty()) return Violation({what, " has an empty name"});
  if (name.size() > limits.name_bytes) {
    return Violation(
        {"the name of ", what, " has ", name.size(), " bytes, the limit is ", limits.name_bytes});
  }
  if (!IsPrintable(name)) return Violation({"the name of ", what, " is not printable UTF-8"});
  return {};
}

Status CheckText(const std::string& what, std::string_view text, const FormatLimits& limits) {
  if (text.size() > limits.text_bytes) {
    return Violation({what, " has ", text.size(), " bytes, the limit is ", limits.text_bytes});
  }
  if (!IsUtf8(text)) return Violation({what, " is not UTF-8"});
  return {};
}

}  // namespace rewire::verify
