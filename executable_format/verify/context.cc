// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/verify/context.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/sort.h"
#include "rewire/base/utf8.h"
#include "rewire/executable_format/instruction_text.h"

namespace rewire::verify {

Status ViolationAt(const Module& module, const Function& function, std::size_t pc, const Message& message) {
  return Violation("{}@{} ({}): {}", function.name, pc, ShortInstructionText(module, function, pc), message);
}

Status CheckLimit(const Message& what, std::uint64_t count, std::uint64_t limit) {
  if (count <= limit) return {};
  return Violation("{}: {}, the limit is {}", what, count, limit);
}

std::string_view FindTwice(Array<std::string_view>* names) {
  Sort(*names);
  const auto at =
      std::adjacent_find(names->begin(), names->end(),
                         [](std::string_view a, std::string_view b) { return !a.empty() && a == b; });
  return at == names->end() ? std::string_view() : *at;
}

Status CheckName(const Message& what, std::string_view name, const FormatLimits& limits) {
  if (name.empty()) return Violation("{} has an empty name", what);
  if (name.size() > limits.name_bytes) {
    return Violation("the name of {} has {} bytes, the limit is {}", what, name.size(), limits.name_bytes);
  }
  if (!IsPrintable(name)) return Violation("the name of {} is not printable UTF-8", what);
  return {};
}

Status CheckText(const Message& what, std::string_view text, const FormatLimits& limits) {
  if (text.size() > limits.text_bytes) {
    return Violation("{} has {} bytes, the limit is {}", what, text.size(), limits.text_bytes);
  }
  if (!IsUtf8(text)) return Violation("{} is not UTF-8", what);
  return {};
}

}  // namespace rewire::verify
