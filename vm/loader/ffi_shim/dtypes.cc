// SPDX-License-Identifier: Apache-2.0
// Element types as tvm-ffi spells them: "float32", "int8x4", "bool", "float8_e4m3fn".
#include <charconv>

#include "rewire/vm/loader/ffi_shim/runtime.h"

namespace rewire::ffi_shim {
namespace {

constexpr std::uint8_t kHandleCode = 3;
constexpr std::uint8_t kBoolCode = 6;

// Codes whose bits are written behind the name.
struct Family {
  std::uint8_t code;
  std::string_view name;
};
constexpr Family kFamilies[] = {{0, "int"}, {1, "uint"}, {2, "float"}, {4, "bfloat"}, {5, "complex"}};

// Codes that are one type each.
struct Named {
  std::uint8_t code, bits;
  std::string_view name;
};
constexpr Named kNamed[] = {
    {kHandleCode, 64, "handle"}, {kBoolCode, 8, "bool"},       {7, 8, "float8_e3m4"},
    {8, 8, "float8_e4m3"},       {9, 8, "float8_e4m3b11fnuz"}, {10, 8, "float8_e4m3fn"},
    {11, 8, "float8_e4m3fnuz"},  {12, 8, "float8_e5m2"},       {13, 8, "float8_e5m2fnuz"},
    {14, 8, "float8_e8m0fnu"},   {15, 6, "float6_e2m3fn"},     {16, 6, "float6_e3m2fn"},
    {17, 4, "float4_e2m1fn"},
};

bool TakePrefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

template <typename T>
bool TakeNumber(std::string_view* text, T* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc() || *number == 0) return false;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return true;
}

// The element type before its lanes; the rest of the text stays in `*text`.
bool TakeElement(std::string_view* text, DLDataType* type) {
  const Named* longest = nullptr;  // "float8_e4m3" begins "float8_e4m3fn"
  for (const Named& named : kNamed) {
    const bool begins = text->substr(0, named.name.size()) == named.name;
    if (begins && (longest == nullptr || named.name.size() > longest->name.size())) longest = &named;
  }
  if (longest != nullptr) {
    TakePrefix(text, longest->name);
    *type = {longest->code, longest->bits, 1};
    return true;
  }
  for (const Family& family : kFamilies) {
    if (!TakePrefix(text, family.name)) continue;
    *type = {family.code, 32, 1};  // "int" alone has 32 bits
    return text->empty() || text->front() == 'x' || TakeNumber(text, &type->bits);
  }
  return false;
}

std::string ToString(DLDataType type) {
  if (type.code == kHandleCode && type.bits == 0 && type.lanes == 0) return "void";
  std::string text;
  for (const Named& named : kNamed) {
    if (named.code == type.code && named.bits == type.bits) text = named.name;
  }
  for (const Family& family : kFamilies) {
    if (family.code == type.code) text = std::string(family.name) + std::to_string(type.bits);
  }
  if (text.empty()) text = "custom[" + std::to_string(type.code) + "]" + std::to_string(type.bits);
  return type.lanes == 1 ? text : text + "x" + std::to_string(type.lanes);
}

}  // namespace

REWIRE_FFI_API int TVMFFIDataTypeFromString(const RewireFFIByteArray* given, DLDataType* type) {
  std::string_view text = View(*given);
  if (text.empty() || text == "void") {
    *type = {kHandleCode, 0, 0};
    return 0;
  }
  const bool read = TakeElement(&text, type);
  if (read && (text.empty() || (TakePrefix(&text, "x") && TakeNumber(&text, &type->lanes) && text.empty())))
    return 0;
  return Raise("ValueError",
               "'" + std::string(View(*given)) + "' is no element type; 'float32' and 'int8x4' are");
}

REWIRE_FFI_API int TVMFFIDataTypeToString(const DLDataType* type, RewireFFIAny* out) {
  *out = NewString(ToString(*type));
  return 0;
}

}  // namespace rewire::ffi_shim
