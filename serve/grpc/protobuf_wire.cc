// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/protobuf_wire.h"

#include <cstring>

namespace rewire::serve {
namespace {

constexpr std::uint64_t kMostField = (std::uint64_t{1} << 29) - 1;

}  // namespace

bool WireReader::TakeVarint(std::string_view* bytes, std::uint64_t* value) {
  *value = 0;
  for (std::size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto byte = static_cast<std::uint8_t>((*bytes)[i]);
    *value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return i < 9 || byte <= 1;  // the tenth byte has one bit
    }
  }
  return false;
}

bool WireReader::Malformed() {
  malformed_ = true;
  rest_ = {};
  return false;
}

bool WireReader::Next() {
  if (rest_.empty()) return false;
  std::uint64_t tag = 0;
  if (!TakeVarint(&rest_, &tag) || tag >> 3 == 0 || tag >> 3 > kMostField) return Malformed();
  field_ = static_cast<std::uint32_t>(tag >> 3);
  bytes_ = {};
  number_ = 0;
  std::size_t size = 0;
  switch (tag & 7) {
    case 0:
      type_ = WireType::kVarint;
      return TakeVarint(&rest_, &number_) || Malformed();
    case 1:
      type_ = WireType::kFixed64;
      size = 8;
      break;
    case 5:
      type_ = WireType::kFixed32;
      size = 4;
      break;
    case 2: {
      type_ = WireType::kBytes;
      std::uint64_t length = 0;
      if (!TakeVarint(&rest_, &length) || length > rest_.size()) return Malformed();
      bytes_ = rest_.substr(0, static_cast<std::size_t>(length));
      rest_.remove_prefix(static_cast<std::size_t>(length));
      return true;
    }
    default:  // groups, which proto3 does not have, and types that there are not
      return Malformed();
  }
  if (rest_.size() < size) return Malformed();
  std::memcpy(&number_, rest_.data(), size);
  rest_.remove_prefix(size);
  return true;
}

void WireWriter::AppendVarint(std::uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

WireWriter& WireWriter::AlwaysNumber(std::uint32_t field, std::uint64_t value) {
  AppendVarint(std::uint64_t{field} << 3, out_);
  AppendVarint(value, out_);
  return *this;
}

WireWriter& WireWriter::Head(std::uint32_t field, std::size_t size) {
  AppendVarint(std::uint64_t{field} << 3 | 2, out_);
  AppendVarint(size, out_);
  return *this;
}

WireWriter& WireWriter::AlwaysText(std::uint32_t field, std::string_view text) {
  Head(field, text.size());
  out_->append(text);
  return *this;
}

}  // namespace rewire::serve
