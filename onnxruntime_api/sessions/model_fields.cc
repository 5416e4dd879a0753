// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/model_fields.h"

namespace rewire::onnxruntime_api {
namespace {

void AppendNumber(std::uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) *to += static_cast<char>((value & 0x7F) | 0x80);
  *to += static_cast<char>(value);
}

}  // namespace

bool Fields::Next() {
  std::uint64_t key = 0;
  const std::string_view start = bytes_;
  if (bytes_.empty() || !ReadNumber(&key)) return false;
  field_ = key >> 3;
  number_ = 0;
  text_ = {};
  is_text_ = (key & 7) == 2;
  bool read = false;
  if ((key & 7) == 0) read = ReadNumber(&number_);
  if ((key & 7) == 1) read = Take(8);
  if ((key & 7) == 2) read = ReadNumber(&number_) && Take(number_);
  if ((key & 7) == 5) read = Take(4);
  raw_ = start.substr(0, start.size() - bytes_.size());
  return read;
}

void Fields::AppendNumbers(std::vector<std::int64_t>* to) const {
  if (!is_text_) {
    to->push_back(static_cast<std::int64_t>(number_));
    return;
  }
  Fields list(text_);
  for (std::uint64_t number = 0; !list.bytes_.empty() && list.ReadNumber(&number);)
    to->push_back(static_cast<std::int64_t>(number));
}

bool Fields::ReadNumber(std::uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    *value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Fields::Take(std::uint64_t size) {
  if (size > bytes_.size()) return false;
  text_ = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return true;
}

void AppendField(std::uint64_t field, std::string_view bytes, std::string* to) {
  AppendNumber(field << 3 | 2, to);
  AppendNumber(bytes.size(), to);
  to->append(bytes);
}

void AppendField(std::uint64_t field, std::uint64_t number, std::string* to) {
  AppendNumber(field << 3, to);
  AppendNumber(number, to);
}

}  // namespace rewire::onnxruntime_api
