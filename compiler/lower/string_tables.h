// SPDX-License-Identifier: Apache-2.0
//
// Strings, of which the program's tensors have none. A tensor of strings is one of int64 positions in a list.
// The list is either known when compiling, or two more tensors of the program: StringList. This says which
// values are such tensors, and which lists they refer to.
//
// Operators that only move elements keep the list. Those that read or make strings have functions of their
// own (operators/text_values.h). All others refuse strings. The executable says in its metadata which list
// belongs to an output or an input (Metadata).
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

// A list that only the run knows: string i has the bytes from offsets[i] to offsets[i + 1].
struct StringList {
  Value* offsets = nullptr;  // i64[count + 1]
  Value* bytes = nullptr;    // u8[length]
};

class StringTables {
 public:
  // Whether the value is a tensor of strings. Then one of the two lists is there.
  bool Has(const Value* value) const { return lists_.contains(value); }
  // The list, if it is known when compiling; else null.
  const Strings* Find(const Value* value) const;
  // The list, if it is not; else null.
  const StringList* Computed(const Value* value) const;
  void Set(const Value* value, Strings strings);
  // A list of two constants is known.
  void Set(const Value* value, StringList list);
  // `value` has strings of the same list as `from`, if that has any.
  void Copy(const Value* from, const Value* value);

  // The keys of a map, in the order of the columns of the tensor that stands for it (ZipMap).
  void SetKeys(const Value* value, Strings keys);
  void SetKeys(const Value* value, const std::vector<std::int64_t>& keys);

  // Appends the lists that only the run knows to a function's outputs, and names for them. Errors:
  // kUnsupported if there is such a name already.
  Status AddLists(std::vector<Value*>* outputs, std::vector<std::string>* names) const;

  // Entries that say what an output's elements stand for: "strings main.0" and "keys main.1". The value is a
  // list in JSON, or says which outputs hold the list. "input strings main.0" says the latter of an input.
  // Errors: kUnsupported if a list is longer than metadata may be.
  Result<std::vector<std::pair<std::string, std::string>>> Metadata(const std::vector<Value*>& inputs,
                                                                    const std::vector<Value*>& outputs) const;
  // The function's input has strings of the list, all three as the caller gives them.
  void SetInput(const Value* input, StringList list) { inputs_[input] = list; }

 private:
  struct Entry {
    std::shared_ptr<const Strings> strings;  // null: computed
    StringList list;
  };
  std::unordered_map<const Value*, Entry> lists_;
  std::unordered_map<const Value*, StringList> inputs_;
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
