// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/instruction_text.h"

namespace rewire::text {
namespace {

bool IsNumber(std::string_view text) { return !text.empty() && text.front() >= '0' && text.front() <= '9'; }

std::optional<std::uint32_t> RegisterNumber(std::string_view text) {
  const std::optional<std::uint64_t> number = ParseUInt64(text);
  if (!number || *number >= kNone) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

Registers::Registers(const Function& function, Cursor cursor)
    : next_(static_cast<std::uint32_t>(function.inputs.size())), count_(next_) {
  for (std::uint32_t i = 0; i < next_; ++i) {
    if (IsIdentifier(function.inputs[i].name)) names_.emplace(function.inputs[i].name, Named{i, true, {}});
  }
  const auto ends_body = [](const Token& token) {
    return token.kind == TokenKind::kEnd ||
           (token.kind == TokenKind::kDirective && (token.text == ".end" || token.text == ".func"));
  };
  for (; !ends_body(cursor.Peek()); cursor.Take()) {
    if (cursor.Peek().kind != TokenKind::kRegister || !IsNumber(cursor.Peek().text)) continue;
    if (const auto number = RegisterNumber(cursor.Peek().text)) numbered_.insert(*number);
  }
}

std::optional<std::uint32_t> Registers::Take(Cursor& cursor, Use use) {
  const Token token = cursor.Peek();
  if (token.kind != TokenKind::kRegister) {
    cursor.FailExpected("a register such as %x");
    return std::nullopt;
  }
  std::optional<std::uint32_t> number;
  if (IsNumber(token.text)) {
    number = RegisterNumber(token.text);
  } else if (IsIdentifier(token.text)) {
    auto named = names_.find(token.text);
    if (named == names_.end()) {
      while (numbered_.count(next_) != 0) ++next_;
      named = names_.emplace(std::string(token.text), Named{next_++, false, token.position}).first;
    }
    named->second.written = named->second.written || use == Use::kWrite;
    number = named->second.number;
  }
  if (!number) {
    cursor.FailExpected("a register such as %x or %7");
    return std::nullopt;
  }
  cursor.Take();
  count_ = std::max(count_, *number + 1);
  return number;
}

void Registers::ReportUnwritten(Diagnostics& diagnostics) const {
  Array<std::string> written;
  for (const auto& [name, named] : names_) {
    if (named.written) written.push_back(name);
  }
  for (const auto& [name, named] : names_) {
    if (named.written) continue;
    std::string names = DidYouMean(name, written);
    if (names.empty()) names = KnownNames("written registers", name, written);
    diagnostics.Report(named.first, fmt::format("%{} is read, but nothing writes it{}", name, names));
  }
}

}  // namespace rewire::text
