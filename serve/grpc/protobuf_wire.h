// SPDX-License-Identifier: Apache-2.0
//
// Protocol Buffers as bytes. The messages of the Open Inference Protocol are few and flat, and a request's
// tensors are used where they lie, so they are read and written here without a library.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace rewire::serve {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Reads the fields of one message. Views are parts of its bytes.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // Goes to the next field. False at the end of the message, and where it is malformed.
  bool Next();
  bool malformed() const { return malformed_; }

  // Whether the field is this one. One of another type is not, as protobuf has it for unknown fields.
  bool Is(std::uint32_t field, WireType type) const { return field_ == field && type_ == type; }
  std::uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  // The value of a varint, or of a fixed type.
  std::uint64_t number() const { return number_; }
  std::int64_t integer() const { return static_cast<std::int64_t>(number_); }
  bool flag() const { return number_ != 0; }
  double real() const { return std::bit_cast<double>(number_); }
  // The content of bytes, texts, messages and packed lists.
  std::string_view bytes() const { return bytes_; }

  // Reads one varint from the beginning of a packed list. False if there is none.
  static bool TakeVarint(std::string_view* bytes, std::uint64_t* value);

 private:
  bool Malformed();

  std::string_view rest_, bytes_;
  std::uint64_t number_ = 0;
  std::uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  bool malformed_ = false;
};

// Appends fields to a message. Numbers that are 0 and texts that are empty are left out, as proto3 does, but
// in the functions named Always.
class WireWriter {
 public:
  explicit WireWriter(std::string* out) : out_(out) {}

  WireWriter& Number(std::uint32_t field, std::uint64_t value) {
    return value == 0 ? *this : AlwaysNumber(field, value);
  }
  WireWriter& AlwaysNumber(std::uint32_t field, std::uint64_t value);
  WireWriter& Text(std::uint32_t field, std::string_view text) {
    return text.empty() ? *this : AlwaysText(field, text);
  }
  WireWriter& AlwaysText(std::uint32_t field, std::string_view text);
  // A packed list of numbers.
  template <typename Numbers>
  WireWriter& Packed(std::uint32_t field, const Numbers& numbers) {
    std::string list;
    for (const auto number : numbers) AppendVarint(static_cast<std::uint64_t>(number), &list);
    return Text(field, list);
  }
  // A message, which `write` fills by a WireWriter of its own.
  template <typename Function>
  WireWriter& Message(std::uint32_t field, const Function& write) {
    std::string message;
    WireWriter writer(&message);
    write(&writer);
    return AlwaysText(field, message);
  }
  // An entry of a map from texts to messages.
  template <typename Function>
  WireWriter& Entry(std::uint32_t field, std::string_view key, const Function& write) {
    return Message(field, [&](WireWriter* entry) { entry->Text(1, key).Message(2, write); });
  }
  // The head of bytes that follow elsewhere.
  WireWriter& Head(std::uint32_t field, std::size_t size);

 private:
  static void AppendVarint(std::uint64_t value, std::string* out);

  std::string* out_;
};

}  // namespace rewire::serve
