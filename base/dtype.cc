// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/dtype.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "rewire/base/message.h"

namespace rewire {
namespace {

struct Spelling {
  std::string_view prefix;
  DTypeCode code;
};

// The short spellings come first: DTypeName prints the first match for a code.
constexpr std::array<Spelling, 11> kSpellings{{{"i", kInt},
                                               {"u", kUInt},
                                               {"f", kFloat},
                                               {"bf", kBFloat},
                                               {"c", kComplex},
                                               {"h", kOpaqueHandle},
                                               {"int", kInt},
                                               {"uint", kUInt},
                                               {"float", kFloat},
                                               {"bfloat", kBFloat},
                                               {"complex", kComplex}}};

std::optional<int> TakeNumber(std::string_view* text) {
  int value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return value;
}

}  // namespace

bool IsValidDType(DLDataType type) {
  return type.code <= kBool && type.bits >= 1 && type.bits <= 128 && type.lanes >= 1;
}

std::string DTypeName(DLDataType type) {
  std::string name;
  if (type.code == kBool) {
    name = type.bits == 8 ? "bool" : Format("bool{}", type.bits);
  } else {
    name = Format("code{}_", type.code);
    for (const Spelling& spelling : kSpellings) {
      if (spelling.code != type.code) continue;
      name = spelling.prefix;
      break;
    }
    name += std::to_string(type.bits);
  }
  if (type.lanes != 1) Append(&name, {"x{}", type.lanes});
  return name;
}

std::optional<DLDataType> ParseDType(std::string_view name) {
  constexpr std::string_view kBoolName = "bool";
  std::optional<DTypeCode> code;
  std::optional<int> bits;
  std::string_view rest;
  if (name.substr(0, kBoolName.size()) == kBoolName) {
    code = kBool;
    rest = name.substr(kBoolName.size());
    bits = rest.empty() || rest.front() == 'x' ? 8 : TakeNumber(&rest);
  } else {
    const std::size_t letters = std::min(name.find_first_of("0123456789"), name.size());
    for (const Spelling& spelling : kSpellings) {
      if (spelling.prefix == name.substr(0, letters)) code = spelling.code;
    }
    rest = name.substr(letters);
    bits = TakeNumber(&rest);
  }
  int lanes = 1;
  if (!rest.empty() && rest.front() == 'x') {
    rest.remove_prefix(1);
    lanes = TakeNumber(&rest).value_or(0);
  }
  if (!code || !bits || !rest.empty() || *bits < 1 || *bits > 128 || lanes < 1 || lanes > 65535) {
    return std::nullopt;
  }
  return MakeDType(*code, *bits, lanes);
}

}  // namespace rewire
