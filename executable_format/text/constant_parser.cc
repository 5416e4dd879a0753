// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/constant_parser.h"
#include "rewire/executable_format/compress_constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/executable_format/text/base64.h"
#include "rewire/executable_format/text/element_text.h"

namespace rewire::text {
namespace {

// `zeros` and `fill` are the only data that takes no text: more than this comes from a file.
constexpr std::uint64_t kMaxFilledBytes = std::uint64_t{1} << 30;

SharedBytes Own(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const Span<const std::byte> view(*owner);
  return {view, std::move(owner)};
}

class DataParser {
 public:
  DataParser(Cursor& cursor, DataFiles& files, Constant& constant)
      : cursor_(cursor), files_(files), constant_(constant), type_(constant.type) {}

  bool Run() {
    start_ = cursor_.Peek().position;
    const bool dynamic = type_.rank == kUnknownRank || type_.dtype == kUnknownDType ||
                         std::any_of(type_.dims.begin(), type_.dims.end(), [](Dim dim) { return dim < 0; });
    if (type_.kind != TypeKind::kTensor || dynamic) {
      return cursor_.Fail(start_, "data needs a tensor type with a dtype and static dimensions");
    }
    const Result<std::uint64_t> expected = CompactBytes(type_.dtype, type_.dims);
    if (!expected) return cursor_.Fail(start_, expected.error().message());
    expected_ = *expected;

    if (cursor_.Peek().kind == TokenKind::kFile || cursor_.Peek().Is("@")) return File();
    if (cursor_.AcceptName("base64")) return Base64();
    if (cursor_.AcceptName("stored")) return Stored();
    if (!HasElementText(type_.dtype)) {
      return cursor_.Fail(start_, fmt::format("{} elements cannot be written as text; give base64 or a file",
                                              DTypeName(type_.dtype)));
    }
    if (cursor_.Peek().Is("{")) return Braces() && Encode(Own(std::move(bytes_)));
    if (cursor_.Peek().IsName("zeros") || cursor_.Peek().IsName("fill")) return Filled();
    if (!type_.dims.empty()) return cursor_.FailExpected("data: {...}, zeros, fill, @file or base64");
    return Element() && Encode(Own(std::move(bytes_)));
  }

  bool RunCode() {
    start_ = cursor_.Peek().position;
    constant_.type = TensorType(kUInt8, {0}).nodes[0];
    if (cursor_.AcceptName("stored")) {
      if (!Stored()) return false;
      constant_.type.dims[0] = static_cast<Dim>(constant_.raw_bytes);
      return true;
    }
    std::optional<SharedBytes> raw = CodeBytes();
    if (!raw) return false;
    constant_.type.dims[0] = static_cast<Dim>(raw->view.size());
    return Encode(std::move(*raw));
  }

 private:
  std::optional<SharedBytes> CodeBytes() {
    if (cursor_.Peek().kind == TokenKind::kFile || cursor_.Peek().Is("@")) {
      const Position position = cursor_.Peek().position;
      const std::optional<std::string> reference = FileReference();
      if (!reference) return std::nullopt;
      Result<SharedBytes> bytes = files_.LoadBytes(*reference);
      if (!bytes) cursor_.Fail(position, bytes.error().message());
      return bytes ? std::optional<SharedBytes>(std::move(*bytes)) : std::nullopt;
    }
    if (cursor_.AcceptName("base64")) {
      std::optional<std::vector<std::byte>> bytes = TakeBase64();
      return bytes ? std::optional<SharedBytes>(Own(std::move(*bytes))) : std::nullopt;
    }
    if (!cursor_.AcceptName("text")) {
      cursor_.FailExpected("code: @file, text {...}, base64 or stored");
      return std::nullopt;
    }
    const bool many = cursor_.Accept("{");
    do {
      if (many && cursor_.Accept("}")) break;
      const std::optional<std::string> line = cursor_.TakeString("source text in quotes");
      if (!line) return std::nullopt;
      const auto* begin = reinterpret_cast<const std::byte*>(line->data());
      bytes_.insert(bytes_.end(), begin, begin + line->size());
    } while (many);
    return Own(std::move(bytes_));
  }

  // Appends one element.
  bool Element() {
    const Position position = cursor_.Peek().position;
    const std::optional<std::string> text = TakeElementText(cursor_);
    if (!text) return false;
    const std::size_t size = ElementBytes(type_.dtype);
    bytes_.resize(bytes_.size() + size);
    const Status parsed = ParseElement(type_.dtype, *text, bytes_.data() + bytes_.size() - size);
    return parsed || cursor_.Fail(position, parsed.error().message());
  }

  // One pair of braces around all elements, or braces nested as the shape says.
  bool Braces() {
    const Position start = cursor_.Peek().position;
    Array<std::int64_t> counts;  // elements or groups so far in every open brace
    bool nested = false;
    do {
      if (cursor_.Peek().Is("{")) {
        if (counts.size() == std::max<std::size_t>(1, type_.dims.size())) {
          return cursor_.FailExpected(fmt::format("an element of {}", TypeName()));
        }
        cursor_.Take();
        nested = nested || !counts.empty();
        counts.push_back(0);
        if (!cursor_.Peek().Is("}")) continue;
      } else {
        if (nested && counts.size() != type_.dims.size()) {
          return cursor_.FailExpected(
              fmt::format("'{{', for the data is nested and {} has rank {}", TypeName(), type_.dims.size()));
        }
        if (!Element()) return false;
        ++counts.back();
      }
      while (!counts.empty() && cursor_.Peek().Is("}")) {
        const std::size_t depth = counts.size() - 1;
        if (nested && counts.back() != type_.dims[depth]) {
          return cursor_.Fail(cursor_.Peek().position,
                              fmt::format("dimension {} of {} is {}, this group has {}", depth, TypeName(),
                                          type_.dims[depth], counts.back()));
        }
        cursor_.Take();
        counts.pop_back();
        if (!counts.empty()) ++counts.back();
      }
      if (!counts.empty() && !cursor_.Accept(",")) return cursor_.FailExpected("',' or '}'");
    } while (!counts.empty());
    if (bytes_.size() != expected_) {
      const std::uint64_t element = ElementBytes(type_.dtype);
      return cursor_.Fail(start, fmt::format("{} has {} elements, {} are given", TypeName(),
                                             expected_ / element, bytes_.size() / element));
    }
    return true;
  }

  bool Filled() {
    const Position start = cursor_.Peek().position;
    const bool zeros = cursor_.AcceptName("zeros");
    if (expected_ > kMaxFilledBytes) {
      return cursor_.Fail(start, fmt::format("{} has {} bytes; put more than {} in a file", TypeName(),
                                             expected_, kMaxFilledBytes));
    }
    if (zeros) return Encode(Own(std::vector<std::byte>(expected_)));
    cursor_.Take();
    if (!Element()) return false;
    const std::size_t size = bytes_.size();
    std::vector<std::byte> filled(expected_);
    for (std::size_t i = 0; i < filled.size(); i += size) std::memcpy(filled.data() + i, bytes_.data(), size);
    return Encode(Own(std::move(filled)));
  }

  // The name behind "@", with or without quotes.
  std::optional<std::string> FileReference() {
    const Token token = cursor_.Take();
    if (token.kind == TokenKind::kPunctuation) return cursor_.TakeString("a file name in quotes");
    return std::string(token.text);
  }

  bool File() {
    const Position position = cursor_.Peek().position;
    const std::optional<std::string> reference = FileReference();
    if (!reference) return false;
    const Result<HostTensor> tensor = files_.Load(*reference);
    if (!tensor) return cursor_.Fail(position, tensor.error().message());
    if (tensor->dtype != type_.dtype || tensor->shape != type_.dims) {
      return cursor_.Fail(position, fmt::format("the constant is {}, '@{}' is {}", TypeName(), *reference,
                                                TensorTypeText(tensor->dtype, tensor->shape)));
    }
    return Encode(tensor->bytes);
  }

  bool Base64() {
    const Position position = cursor_.Peek().position;
    std::optional<std::vector<std::byte>> bytes = TakeBase64();
    if (!bytes) return false;
    if (bytes->size() != expected_) {
      return cursor_.Fail(position,
                          fmt::format("{} has {} bytes, {} are given", TypeName(), expected_, bytes->size()));
    }
    return Encode(Own(std::move(*bytes)));
  }

  bool Stored() {
    const std::optional<std::uint64_t> raw_bytes = cursor_.TakeUInt64("the number of raw bytes");
    if (!raw_bytes) return false;
    std::optional<std::vector<std::byte>> bytes = TakeBase64();
    if (!bytes) return false;
    constant_.raw_bytes = *raw_bytes;
    constant_.stored = Own(std::move(*bytes));
    return true;
  }

  std::optional<std::vector<std::byte>> TakeBase64() {
    const Position position = cursor_.Peek().position;
    const std::optional<std::string> text = cursor_.TakeString("base64 in quotes");
    if (!text) return std::nullopt;
    std::optional<std::vector<std::byte>> bytes = DecodeBase64(*text);
    if (!bytes) cursor_.Fail(position, "this is not base64 with padding");
    return bytes;
  }

  bool Encode(SharedBytes raw) {
    constant_.raw_bytes = raw.view.size();
    constant_.stored = std::move(raw);
    const std::uint32_t codec = std::exchange(constant_.codec, std::uint32_t{kCodecNone});
    if (codec == kCodecNone) return true;
    if (codec != kCodecZstd) {
      return cursor_.Fail(start_, fmt::format("codec {} is the host's: give its bytes with 'stored'", codec));
    }
    const Status compressed = CompressConstant(&constant_);
    return compressed || cursor_.Fail(start_, compressed.error().message());
  }

  std::string TypeName() const { return TensorTypeText(type_.dtype, type_.dims); }

  Cursor& cursor_;
  DataFiles& files_;
  Constant& constant_;
  const TypeNode& type_;
  Position start_;
  std::uint64_t expected_ = 0;  // bytes of the type
  std::vector<std::byte> bytes_;
};

}  // namespace

bool TakeConstantData(Cursor& cursor, DataFiles& files, Constant* constant) {
  return DataParser(cursor, files, *constant).Run();
}

bool TakeCodeData(Cursor& cursor, DataFiles& files, Constant* constant) {
  return DataParser(cursor, files, *constant).RunCode();
}

std::optional<std::string> TakeElementText(Cursor& cursor) {
  const Token token = cursor.Peek();
  if (token.kind != TokenKind::kNumber && token.kind != TokenKind::kName) {
    cursor.FailExpected("a value");
    return std::nullopt;
  }
  cursor.Take();
  std::string text(token.text);
  if (token.IsName("nan") && cursor.Peek().Is(":")) {
    cursor.Take();
    if (cursor.Peek().kind != TokenKind::kNumber) {
      cursor.FailExpected("the bits of the NaN");
      return std::nullopt;
    }
    text += ':';
    text += cursor.Take().text;
  }
  return text;
}

}  // namespace rewire::text
