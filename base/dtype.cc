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

// Codes that are one type each.
struct NarrowFloat {
  std::string_view name;
  DTypeCode code;
  int bits;
};

constexpr std::array<NarrowFloat, 6> kNarrowFloats{{{"f8e4m3fn", kFloat8E4M3FN, 8},
                                                    {"f8e4m3fnuz", kFloat8E4M3FNUZ, 8},
                                                    {"f8e5m2", kFloat8E5M2, 8},
                                                    {"f8e5m2fnuz", kFloat8E5M2FNUZ, 8},
                                                    {"f8e8m0fnu", kFloat8E8M0FNU, 8},
                                                    {"f4e2m1fn", kFloat4E2M1FN, 4}}};

const NarrowFloat* FindNarrowFloat(DLDataType type) {
  for (const NarrowFloat& known : kNarrowFloats) {
    if (known.code == type.code && known.bits == type.bits) return &known;
  }
  return nullptr;
}

std::optional<int> TakeNumber(std::string_view* text) {
  int value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return value;
}

}  // namespace

bool IsValidDType(DLDataType type) {
  if (type.lanes < 1) return false;
  if (type.code > kBool) return FindNarrowFloat(type) != nullptr;
  return type.bits >= 1 && type.bits <= 128;
}

std::string DTypeName(DLDataType type) {
  std::string name;
  if (type.code == kBool) {
    name = type.bits == 8 ? "bool" : Format("bool{}", type.bits);
  } else if (const NarrowFloat* narrow = FindNarrowFloat(type)) {
    name = narrow->name;
  } else {
    name = Format("code{}_", type.code);
    for (const Spelling& spelling : kSpellings) {
      if (spelling.code != type.code) continue;
      name = spelling.prefix;
      break;
    }
    Append(&name, {"{}", type.bits});
  }
  if (type.lanes != 1) Append(&name, {"x{}", type.lanes});
  return name;
}

std::optional<DLDataType> ParseDType(std::string_view name) {
  constexpr std::string_view kBoolName = "bool";
  std::optional<DTypeCode> code;
  std::optional<int> bits;
  std::string_view rest;
  const NarrowFloat* narrow = nullptr;
  for (const NarrowFloat& known : kNarrowFloats) {
    if (name.substr(0, name.find('x')) == known.name) narrow = &known;
  }
  if (narrow != nullptr) {
    code = narrow->code;
    bits = narrow->bits;
    rest = name.substr(narrow->name.size());
  } else if (name.substr(0, kBoolName.size()) == kBoolName) {
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
