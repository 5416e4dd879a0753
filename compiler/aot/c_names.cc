// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/c_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rewire::aot {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Words of C and C++, and what the source itself uses.
constexpr std::array kReserved = {
    "alignas",  "alignof",  "and",          "arena",    "arguments", "asm",      "auto",    "bool",
    "break",    "case",     "catch",        "char",     "class",     "compl",    "concept", "const",
    "continue", "decltype", "default",      "delete",   "do",        "double",   "else",    "enum",
    "explicit", "export",   "extern",       "false",    "float",     "for",      "friend",  "goto",
    "if",       "inline",   "int",          "kernels",  "long",      "memory",   "mutable", "namespace",
    "new",      "noexcept", "not",          "nullptr",  "operator",  "or",       "private", "protected",
    "public",   "register", "requires",     "restrict", "return",    "short",    "signed",  "sizeof",
    "static",   "struct",   "switch",       "template", "tensors",   "this",     "throw",   "true",
    "try",      "typedef",  "typeid",       "typename", "union",     "unsigned", "using",   "virtual",
    "void",     "volatile", "weight_bytes", "weights",  "while",     "xor"};

// Whether the source may give this name to a variable of its own: "in0", "p12".
bool IsNumbered(std::string_view name) {
  const std::size_t digits = name.find_first_of("0123456789");
  if (digits == std::string_view::npos) return false;
  const std::string_view stem = name.substr(0, digits);
  const bool is_own = stem == "in" || stem == "out" || stem == "n" || stem == "p" || stem == "s";
  return is_own && name.find_first_not_of("0123456789", digits) == std::string_view::npos;
}

}  // namespace

std::string Upper(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

bool IsCName(std::string_view name) {
  return !name.empty() && IsLetter(name.front()) && name.front() != '_' &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

std::string CName(std::string_view name, std::set<std::string>* taken) {
  std::string base;
  for (const char c : name) base += IsLetter(c) || IsDigit(c) ? c : '_';
  if (base.empty() || !IsLetter(base.front()) || base.front() == '_') base = "x" + base;
  const bool is_reserved = std::find(kReserved.begin(), kReserved.end(), base) != kReserved.end();
  if (is_reserved || IsNumbered(base)) base += "_";
  std::string result = base;
  for (int i = 2; !taken->insert(result).second; ++i) result = fmt::format("{}_{}", base, i);
  return result;
}

std::string CString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '?') {
      quoted += "\\?";  // no trigraphs
    } else if (c >= ' ' && c <= '~') {
      quoted += c;
    } else {
      quoted += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return quoted + "\"";
}

}  // namespace rewire::aot
