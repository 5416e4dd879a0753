// SPDX-License-Identifier: Apache-2.0
#include "rewire/python/bindings/formats.h"

namespace rewire::python {

std::optional<DLDataType> DTypeOfFormat(std::string_view format, std::int64_t bytes) {
  if (!format.empty() && (format.front() == '@' || format.front() == '=' || format.front() == '<')) {
    format.remove_prefix(1);
  }
  const int bits = static_cast<int>(8 * bytes);
  if (format == "Zf" || format == "Zd") return MakeDType(kComplex, bits);
  if (format.size() != 1) return std::nullopt;
  switch (format.front()) {
    case '?':
      return kBool8;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return MakeDType(kInt, bits);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return MakeDType(kUInt, bits);
    case 'e':
    case 'f':
    case 'd':
      return MakeDType(kFloat, bits);
    default:
      return std::nullopt;
  }
}

const char* FormatOfDType(DLDataType dtype) {
  struct Row {
    DLDataType dtype;
    const char* format;
  };
  static constexpr Row kRows[] = {
      {kFloat32, "f"},
      {kFloat64, "d"},
      {kFloat16, "e"},
      {kInt8, "b"},
      {kInt32, "i"},
      {kInt64, "q"},
      {kUInt8, "B"},
      {kBool8, "?"},
      {MakeDType(kInt, 16), "h"},
      {MakeDType(kUInt, 16), "H"},
      {MakeDType(kUInt, 32), "I"},
      {MakeDType(kUInt, 64), "Q"},
      {MakeDType(kComplex, 64), "Zf"},
      {MakeDType(kComplex, 128), "Zd"},
  };
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.format;
  }
  return nullptr;
}

}  // namespace rewire::python
