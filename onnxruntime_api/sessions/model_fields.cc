// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/model_fields.h"

namespace rewire::onnxruntime_api {

bool Fields::Next() {
  std::uint64_t key = 0;
  if (bytes_.empty() || !ReadNumber(&key)) return false;
  field_ = key >> 3;
  number_ = 0;
  text_ = {};
  bool read = false;
  if ((key & 7) == 0) read = ReadNumber(&number_);
  if ((key & 7) == 1) read = Take(8);
  if ((key & 7) == 2) read = ReadNumber(&number_) && Take(number_);
  if ((key & 7) == 5) read = Take(4);
  return read;
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

}  // namespace rewire::onnxruntime_api
