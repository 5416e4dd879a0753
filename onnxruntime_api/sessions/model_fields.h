// SPDX-License-Identifier: Apache-2.0
//
// Messages of protobuf, read field by field: so a model's weights are not touched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rewire::onnxruntime_api {

// A message in protobuf's encoding. Numbers of fields are those of onnx.proto.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  // Reads the next field; false at the end, and where the bytes are damaged.
  bool Next();
  std::uint64_t field() const { return field_; }
  std::uint64_t number() const { return number_; }
  std::string_view text() const { return text_; }
  std::string string() const { return std::string(text_); }

 private:
  bool ReadNumber(std::uint64_t* value);
  bool Take(std::uint64_t size);

  std::string_view bytes_;
  std::uint64_t field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view text_;
};

}  // namespace rewire::onnxruntime_api
