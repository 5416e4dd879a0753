// SPDX-License-Identifier: Apache-2.0
//
// Strings, of which the program's tensors have none. A tensor of strings is one of int64 positions in a list
// that is known when compiling. This says which values are such tensors, and which lists they refer to.
//
// Operators that only move elements keep the list; those that look strings up do it when compiling. All
// others refuse strings. The executable says in its metadata which list belongs to an output (Metadata).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

using Strings = std::vector<std::string>;

class StringTables {
 public:
  // Null if the value is no tensor of strings.
  const Strings* Find(const Value* value) const;
  void Set(const Value* value, Strings strings);
  // `value` has strings of the same list as `from`, if that has any.
  void Copy(const Value* from, const Value* value);

  // The keys of a map, in the order of the columns of the tensor that stands for it (ZipMap).
  void SetKeys(const Value* value, Strings keys);
  void SetKeys(const Value* value, std::vector<std::int64_t> keys);

  // Entries that say what an output's elements stand for: "strings main.0" and "keys main.1", each with a
  // list in JSON. Errors: kUnsupported if a list is longer than metadata may be.
  Result<std::vector<std::pair<std::string, std::string>>> Metadata(const std::vector<Value*>& outputs) const;

 private:
  std::unordered_map<const Value*, std::shared_ptr<const Strings>> strings_;
  std::unordered_map<const Value*, std::string> keys_;  // JSON
};

// Positions in a list without repetitions, which grows.
class StringPositions {
 public:
  std::int64_t Of(const std::string& text);
  Strings Take() { return std::move(strings_); }

 private:
  std::map<std::string, std::int64_t> positions_;
  Strings strings_;
};

}  // namespace rewire::compiler
