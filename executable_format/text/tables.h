// SPDX-License-Identifier: Apache-2.0
// The module that a text is turned into, with the names by which the text refers to its tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rewire/executable_format/module.h"
#include "rewire/executable_format/text/cursor.h"

namespace rewire::text {

// Names of one table's entries; the table itself is in the module.
class NameIndex {
 public:
  // `what` names an entry in errors ("kernel"), `directive` says how one is declared (".kernel").
  NameIndex(std::string_view what, std::string_view directive) : what_(what), directive_(directive) {}

  // Returns false if the name is already used.
  bool Add(const std::string& name, std::uint32_t index) { return indices_.emplace(name, index).second; }
  std::optional<std::uint32_t> Find(const std::string& name) const;

  // A declaration's `name`, `#index`, or `#index name` for entry number `count` of the table. Only the last
  // two forms may repeat a name; it then goes on meaning the earlier entry.
  std::optional<std::string> TakeDeclared(Cursor& cursor, std::uint32_t count);
  // Reads a reference: either `name`, which must be declared, or `#index`, which is not checked.
  std::optional<std::uint32_t> TakeReference(Cursor& cursor) const;

 private:
  std::string what_;
  std::string directive_;
  std::unordered_map<std::string, std::uint32_t> indices_;
};

struct Tables {
  Module module;
  NameIndex constants{"constant", ".const, .param or .computed"};
  NameIndex kernels{"kernel", ".kernel"};
  NameIndex functions{"function", ".func"};
  NameIndex device_aliases{"device", ".device"};

  // Returns the entry's index. Adds it if the table has no equal entry.
  std::uint32_t Device(const DeviceEntry& device);
  std::uint32_t Symbol(const std::string& name);
  std::uint32_t String(const std::string& text);
  // Adds an entry, even if the table has an equal one.
  void AddSymbol(const std::string& name);
  void LimitLastSymbol(std::int64_t limit);
  void AddString(const std::string& text);

 private:
  std::unordered_map<std::string, std::uint32_t> symbols_;
  std::unordered_map<std::string, std::uint32_t> strings_;
};

// `cuda:1 "memory.scope"`, an alias, or `#index`: the device's index in the table, to which it is added.
std::optional<std::uint32_t> TakeDevice(Cursor& cursor, Tables& tables);
// The same without alias and index: what .device declares.
std::optional<DeviceEntry> TakeDeviceEntry(Cursor& cursor);

}  // namespace rewire::text
