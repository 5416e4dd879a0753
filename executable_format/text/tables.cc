// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/instruction_text.h"

namespace rewire::text {

std::optional<std::uint32_t> NameIndex::Find(const std::string& name) const {
  const auto found = indices_.find(name);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> NameIndex::TakeDeclared(Cursor& cursor, std::uint32_t count) {
  const Position position = cursor.Peek().position;
  if (!cursor.Peek().Is("#")) {
    std::optional<std::string> name = cursor.TakeName(fmt::format("a {}'s name", what_));
    if (name && !Add(*name, count)) {
      cursor.Fail(position, fmt::format("{} '{}' is declared twice", what_, *name));
      return std::nullopt;
    }
    return name;
  }
  const std::optional<std::uint32_t> index = cursor.TakeIndex();
  if (!index) return std::nullopt;
  if (*index != count) {
    cursor.Fail(position, fmt::format("this is entry #{} of its table, not #{}", count, *index));
    return std::nullopt;
  }
  const bool has_name = cursor.Peek().kind == TokenKind::kName || cursor.Peek().kind == TokenKind::kString;
  std::string name = has_name ? *cursor.TakeName("a name") : std::string();
  if (!name.empty()) Add(name, count);
  return name;
}

std::optional<std::uint32_t> NameIndex::TakeReference(Cursor& cursor) const {
  if (cursor.Peek().Is("#")) return cursor.TakeIndex();
  const Position position = cursor.Peek().position;
  const std::optional<std::string> name = cursor.TakeName(fmt::format("a {}'s name", what_));
  if (!name) return std::nullopt;
  if (const std::optional<std::uint32_t> index = Find(*name)) return index;
  Array<std::string> known;
  for (const auto& [declared, index] : indices_) known.push_back(declared);
  cursor.Fail(position, fmt::format("no {} '{}' is declared with {}{}", what_, *name, directive_,
                                    DidYouMean(*name, known)));
  return std::nullopt;
}

std::uint32_t Tables::Device(const DeviceEntry& device) {
  const auto found = std::find(module.devices.begin(), module.devices.end(), device);
  const auto index = static_cast<std::uint32_t>(found - module.devices.begin());
  if (found == module.devices.end()) module.devices.push_back(device);
  return index;
}

std::uint32_t Tables::Symbol(const std::string& name) {
  if (symbols_.find(name) == symbols_.end()) AddSymbol(name);
  return symbols_[name];
}

std::uint32_t Tables::String(const std::string& text) {
  if (strings_.find(text) == strings_.end()) AddString(text);
  return strings_[text];
}

void Tables::AddSymbol(const std::string& name) {
  symbols_.emplace(name, static_cast<std::uint32_t>(module.symbols.size()));
  module.symbols.push_back(name);
  if (!module.symbol_limits.empty()) module.symbol_limits.push_back(kNoLimit);
}

void Tables::LimitLastSymbol(std::int64_t limit) {
  module.symbol_limits.resize(module.symbols.size(), kNoLimit);
  module.symbol_limits.back() = limit;
}

void Tables::AddString(const std::string& text) {
  strings_.emplace(text, static_cast<std::uint32_t>(module.strings.size()));
  module.strings.push_back(text);
}

std::optional<DeviceEntry> TakeDeviceEntry(Cursor& cursor) {
  constexpr std::string_view kWhat = "a device such as cpu or cuda:0";
  constexpr std::string_view kNumbered = "device";  // "device99": a type that has no name
  const Token token = cursor.Peek();
  if (token.kind != TokenKind::kName) {
    cursor.FailExpected(kWhat);
    return std::nullopt;
  }
  DeviceEntry device;
  std::optional<std::int32_t> type = ParseDeviceTypeName(token.text);
  if (!type && token.text.substr(0, kNumbered.size()) == kNumbered) {
    const std::optional<std::uint64_t> number = ParseUInt64(token.text.substr(kNumbered.size()));
    if (number && *number <= std::numeric_limits<std::int32_t>::max())
      type = static_cast<std::int32_t>(*number);
  }
  if (!type) {
    cursor.FailExpected(kWhat);
    return std::nullopt;
  }
  device.type = *type;
  cursor.Take();
  if (cursor.Accept(":")) {
    const Position position = cursor.Peek().position;
    const std::optional<std::int64_t> id = cursor.TakeInt64("the device's number");
    if (!id) return std::nullopt;
    if (*id < std::numeric_limits<std::int32_t>::min() || *id > std::numeric_limits<std::int32_t>::max()) {
      cursor.Fail(position, "a device's number has 32 bits");
      return std::nullopt;
    }
    device.id = static_cast<std::int32_t>(*id);
  }
  if (cursor.Peek().kind == TokenKind::kString) device.memory_scope = *cursor.TakeString("a memory scope");
  return device;
}

std::optional<std::uint32_t> TakeDevice(Cursor& cursor, Tables& tables) {
  if (cursor.Peek().Is("#")) return cursor.TakeIndex();
  if (cursor.Peek().kind == TokenKind::kName) {
    if (const auto alias = tables.device_aliases.Find(std::string(cursor.Peek().text))) {
      cursor.Take();
      return alias;
    }
  }
  const std::optional<DeviceEntry> device = TakeDeviceEntry(cursor);
  if (!device) return std::nullopt;
  return tables.Device(*device);
}

}  // namespace rewire::text
