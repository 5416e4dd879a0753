// SPDX-License-Identifier: Apache-2.0
//
// Messages of protobuf, read and written field by field: so a model's weights are not touched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  // Appends the numbers of a repeated field: one, or a packed list, which writers of proto3 make. Protobuf
  // asks readers to take both. A damaged list ends at the damage.
  void AppendNumbers(std::vector<std::int64_t>* to) const;
  // The whole field, with its key.
  std::string_view raw() const { return raw_; }
  // Returns the bytes behind the field.
  std::string_view rest() const { return bytes_; }

 private:
  bool ReadNumber(std::uint64_t* value);
  bool Take(std::uint64_t size);

  std::string_view bytes_;
  std::uint64_t field_ = 0;
  std::uint64_t number_ = 0;
  bool is_text_ = false;
  std::string_view text_;
  std::string_view raw_;
};

// Appends a field that holds text, bytes or a message; or a number.
void AppendField(std::uint64_t field, std::string_view bytes, std::string* to);
void AppendField(std::uint64_t field, std::uint64_t number, std::string* to);

}  // namespace rewire::onnxruntime_api
