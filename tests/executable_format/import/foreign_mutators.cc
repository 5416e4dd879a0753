// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/import/foreign_mutators.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "rewire/executable_format/import/relay_file.h"
#include "rewire/tests/executable_format/import/foreign_files.h"

namespace rewire::tvm {
namespace {

using Json = nlohmann::json;

// A number that a reader might stumble over.
std::int64_t OddNumber(Random& random, std::int64_t before) {
  const auto bits = static_cast<std::uint64_t>(before);  // unsigned, for the overflows
  switch (Below(random, 8)) {
    case 0:
      return static_cast<std::int64_t>(bits + 1);
    case 1:
      return static_cast<std::int64_t>(bits - 1);
    case 2:
      return static_cast<std::int64_t>(0 - bits);
    case 3:
      return static_cast<std::int64_t>(std::uint64_t{1} << Below(random, 64));
    case 4:
      return static_cast<std::int64_t>(random());
    case 5:
      return INT64_MAX;
    default:
      return static_cast<std::int64_t>(Below(random, 24));
  }
}

// Every value of a document, the document first.
void CollectValues(Json& json, std::vector<Json*>& values) {
  values.push_back(&json);
  for (Json& child : json) {
    if (child.is_structured()) {
      CollectValues(child, values);
    } else {
      values.push_back(&child);
    }
  }
}

// A value that a reader of graphs might stumble over.
Json OddValue(Random& random, const Json& before) {
  switch (Below(random, 8)) {
    case 0:
      return nullptr;
    case 1:
      return Json::array();
    case 2:
      return std::string(Below(random, 3) * 3000, 'n');
    case 3:
      return Json::array({before, before});
    case 4:
      return 1.5;
    default:
      return OddNumber(random, before.is_number_integer() ? before.get<std::int64_t>() : 1);
  }
}

void ChangeList(Json& list, Random& random) {
  const std::size_t at = Below(random, list.size());
  const std::size_t other = Below(random, list.size());
  switch (Below(random, 4)) {
    case 0:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      list.push_back(list[at]);
      break;
    case 2: {
      const Json element = list[at];
      for (std::uint64_t i = Below(random, 200); i > 0; --i) list.push_back(element);
      break;
    }
    default:
      std::swap(list[at], list[other]);
  }
}

// A part of a file: fields of `size` bytes, from `begin` to `end`.
struct Region {
  std::uint64_t begin, end, size;
};

template <typename T>
T ReadAt(const std::string& file, std::uint64_t at) {
  T value{};
  if (at <= file.size() && sizeof(T) <= file.size() - at) std::memcpy(&value, file.data() + at, sizeof(T));
  return value;
}

// The tables of a library by which it is read: headers, segments, dynamic table, symbols, hash table,
// strings. Addresses of the tables are taken for offsets, as they are in the first segment.
std::vector<Region> FindTables(const std::string& file) {
  const auto header = ReadAt<Elf64_Ehdr>(file, 0);
  std::vector<Region> tables = {{0, sizeof(header), 2},
                                {header.e_phoff, header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr), 8}};
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = ReadAt<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_DYNAMIC) continue;
    tables.push_back({segment.p_offset, segment.p_offset + segment.p_filesz, 8});
    for (std::uint64_t at = segment.p_offset; at < segment.p_offset + segment.p_filesz;
         at += sizeof(Elf64_Dyn)) {
      const auto entry = ReadAt<Elf64_Dyn>(file, at);
      const std::uint64_t table = entry.d_un.d_ptr;
      if (entry.d_tag == DT_SYMTAB) tables.push_back({table, table + 24 * sizeof(Elf64_Sym), 8});
      if (entry.d_tag == DT_HASH || entry.d_tag == DT_GNU_HASH) tables.push_back({table, table + 128, 4});
      if (entry.d_tag == DT_STRTAB) tables.push_back({table, table + 512, 1});
    }
  }
  return tables;
}

}  // namespace

std::uint64_t Below(Random& random, std::uint64_t limit) { return limit == 0 ? 0 : random() % limit; }

std::string Damage(std::string bytes, Random& random) {
  if (bytes.size() < 16) return bytes;
  for (std::uint64_t changes = 1 + Below(random, 3); changes > 0; --changes) {
    const std::size_t at = Below(random, bytes.size() - 8);
    const std::size_t other = Below(random, bytes.size() - 8);
    const std::size_t size = 1 + Below(random, std::min<std::size_t>(64, bytes.size() - std::max(at, other)));
    switch (Below(random, 10)) {
      case 0:
        bytes.resize(std::max<std::size_t>(at, 16));
        break;
      case 1:
        bytes.insert(at, bytes.substr(other, size));
        break;
      case 2:
        bytes.replace(at, size, bytes.substr(other, size));
        break;
      case 3:
      case 4:
      case 5: {
        std::int64_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof(value));
        value = OddNumber(random, value);
        std::memcpy(bytes.data() + at, &value, sizeof(value));
        break;
      }
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(random, 8)));
    }
  }
  return bytes;
}

std::vector<std::size_t> FindInstructions(const std::string& file) {
  std::vector<std::size_t> places;
  const SharedBytes bytes = Share(file);
  const Result<RelayFile> parsed = ReadRelayFile(bytes.view);
  if (!parsed) return places;
  std::size_t from = 0;
  for (const RelayFunction& function : parsed->functions) {
    for (const RelayInstruction& instruction : function.instructions) {
      const auto opcode = static_cast<std::int64_t>(instruction.opcode);
      // In 0.8 the parsed device fields differ from the file's, and with them the hash: such are passed over.
      StreamWriter words;
      words.Count(2 + instruction.fields.size());
      words.Put(RelayInstructionHash(opcode, instruction.fields));
      words.Put(opcode);
      for (std::int64_t value : instruction.fields) words.Put(value);
      const std::size_t found = file.find(words.bytes(), from);
      if (found == std::string::npos) continue;
      places.push_back(found + sizeof(std::uint64_t));
      from = found + words.bytes().size();
    }
  }
  return places;
}

std::string ChangeField(std::string bytes, std::size_t place, Random& random) {
  std::uint64_t count = 0;
  std::memcpy(&count, bytes.data() + place - sizeof(count), sizeof(count));
  std::vector<std::int64_t> words(count);  // hash, opcode, fields
  std::memcpy(words.data(), bytes.data() + place, count * sizeof(std::int64_t));
  std::int64_t& changed = words[1 + Below(random, count - 1)];
  changed = OddNumber(random, changed);
  words[0] = RelayInstructionHash(words[1], {words.data() + 2, count - 2});
  std::memcpy(bytes.data() + place, words.data(), count * sizeof(std::int64_t));
  return bytes;
}

std::string ChangeJson(const std::string& text, Random& random) {
  Json json = Json::parse(text);
  for (std::uint64_t changes = 1 + Below(random, 3); changes > 0; --changes) {
    std::vector<Json*> values;
    CollectValues(json, values);
    Json& chosen = *values[Below(random, values.size())];
    if (chosen.is_array() && !chosen.empty() && Below(random, 4) != 0) {
      ChangeList(chosen, random);
    } else {
      chosen = OddValue(random, chosen);
    }
  }
  return json.dump();
}

std::string ChangeElf(std::string file, Random& random) {
  const std::vector<Region> tables = FindTables(file);
  for (std::uint64_t changes = 1 + Below(random, 3); changes > 0; --changes) {
    const Region& table = tables[Below(random, tables.size())];
    const std::uint64_t end = std::min<std::uint64_t>(table.end, file.size());
    if (table.begin >= end || end - table.begin < table.size) continue;
    const std::uint64_t at = table.begin + Below(random, (end - table.begin) / table.size) * table.size;
    std::int64_t value = 0;
    std::memcpy(&value, file.data() + at, table.size);
    value = OddNumber(random, value);
    std::memcpy(file.data() + at, &value, table.size);
  }
  return file;
}

}  // namespace rewire::tvm
