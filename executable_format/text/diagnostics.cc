// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "rewire/base/array.h"

namespace rewire::text {

void Diagnostics::Report(Position position, const std::string& message) {
  if (count_++ < max_errors_) entries_.push_back({position, message});
}

Error Diagnostics::ToError() const {
  // Signatures are read before bodies, so reports do not come in the order of the text.
  Array<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.position.line, a.position.column) < std::tie(b.position.line, b.position.column);
  });
  std::string text;
  for (const Entry& entry : sorted) {
    if (!text.empty()) text += '\n';
    text +=
        fmt::format("{}:{}:{}: {}", file_name_, entry.position.line, entry.position.column, entry.message);
  }
  if (full()) text += fmt::format("\n{}: stopped after {} errors", file_name_, entries_.size());
  return Error(StatusCode::kInvalidArgument, std::move(text));
}

}  // namespace rewire::text
