// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/npy_header.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "rewire/base/dtype.h"

namespace rewire {
namespace {

Status Malformed(std::string_view what) {
  return Fail(StatusCode::kInvalidFile, fmt::format("its header is damaged: {}", what));
}

// numpy's kind letters and the DLPack codes of the same meaning.
struct Kind {
  char letter;
  DTypeCode code;
};
constexpr Kind kKinds[] = {{'b', kBool}, {'i', kInt}, {'u', kUInt}, {'f', kFloat}, {'c', kComplex}};

Result<DLDataType> ParseDescr(std::string_view descr) {
  const auto unsupported = [&](std::string_view why) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("its element type '{}' is not supported: {}", descr.substr(0, 40), why));
  };
  if (descr.size() < 3) return unsupported("expected a type such as '<f4'");
  if (descr[0] == '>')
    return unsupported("big-endian; convert it with array.astype(array.dtype.newbyteorder('<'))");
  if (descr[0] != '<' && descr[0] != '|' && descr[0] != '=')
    return unsupported("expected a type such as '<f4'");
  int bytes = 0;
  const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), bytes);
  if (error != std::errc() || end != descr.data() + descr.size() || bytes < 1) {
    return unsupported("expected a type such as '<f4'");
  }
  if (descr[1] == 'U' && descr[0] != '|') {
    if (bytes > UINT16_MAX) return unsupported("its strings have room for more than 65535 characters");
    return DLDataType{kDLOpaqueHandle, 32, static_cast<std::uint16_t>(bytes)};
  }
  for (const Kind& kind : kKinds) {
    if (kind.letter != descr[1]) continue;
    const bool known = kind.code == kBool      ? bytes == 1
                       : kind.code == kFloat   ? bytes == 2 || bytes == 4 || bytes == 8
                       : kind.code == kComplex ? bytes == 8 || bytes == 16
                                               : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (!known) return unsupported("DLPack has no such size");
    return MakeDType(kind.code, bytes * 8);
  }
  return unsupported("only bool, integers, floats, complex numbers and str are");
}

// Reads the literal from left to right; every Take skips blanks first.
class DictionaryParser {
 public:
  explicit DictionaryParser(std::string_view text) : text_(text) {}

  Result<NpyHeader> Run() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Accept('{')) return Malformed("no '{'");
    while (!Accept('}')) {
      const std::optional<std::string_view> key = TakeString();
      if (!key || !Accept(':')) return Malformed("no key");
      if (*key == "descr") {
        if (Peek() == '[' || Peek() == '{') {
          return Fail(StatusCode::kUnsupported, "it holds records; store each field as an array of its own");
        }
        const std::optional<std::string_view> descr = TakeString();
        if (!descr) return Malformed("'descr' is no string");
        Result<DLDataType> dtype = ParseDescr(*descr);
        if (!dtype) return Forward(dtype);
        header.dtype = *dtype;
        has_descr = true;
      } else if (*key == "fortran_order") {
        header.fortran_order = AcceptWord("True");
        if (!header.fortran_order && !AcceptWord("False"))
          return Malformed("'fortran_order' is not True or False");
        has_order = true;
      } else if (*key == "shape") {
        if (!TakeShape(&header.shape)) return Malformed("'shape' is no tuple of sizes");
        has_shape = true;
      } else {
        return Malformed(fmt::format("unknown key '{}'", key->substr(0, 40)));
      }
      if (!Accept(',') && Peek() != '}') return Malformed("no ',' between keys");
    }
    if (!has_descr || !has_order || !has_shape)
      return Malformed("it lacks 'descr', 'fortran_order' or 'shape'");
    if (Peek() != '\0') return Malformed("text after '}'");
    return header;
  }

 private:
  char Peek() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool Accept(char c) {
    if (Peek() != c) return false;
    ++position_;
    return true;
  }
  bool AcceptWord(std::string_view word) {
    Peek();
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  std::optional<std::string_view> TakeString() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t start = position_ + 1;
    const std::size_t end = text_.find(quote, start);
    if (end == std::string_view::npos) return std::nullopt;
    position_ = end + 1;
    return text_.substr(start, end - start);
  }
  bool TakeShape(std::vector<std::int64_t>* shape) {
    if (!Accept('(')) return false;
    shape->clear();
    while (!Accept(')')) {
      Peek();
      std::int64_t dim = 0;
      const char* end = text_.data() + text_.size();
      const auto [next, error] = std::from_chars(text_.data() + position_, end, dim);
      if (error != std::errc() || dim < 0) return false;
      position_ = static_cast<std::size_t>(next - text_.data());
      if (Peek() == 'L') ++position_;  // Python 2 wrote long integers so
      shape->push_back(dim);
      if (!Accept(',') && Peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::string_view text) { return DictionaryParser(text).Run(); }

Result<std::string> NpyHeaderText(DLDataType dtype, Span<const std::int64_t> shape) {
  std::string descr;
  for (const Kind& kind : kKinds) {
    if (kind.code != dtype.code) continue;
    descr = fmt::format("{}{}{}", dtype.bits == 8 ? '|' : '<', kind.letter, dtype.bits / 8);
  }
  const bool is_text = dtype.code == kDLOpaqueHandle && dtype.bits == 32 && dtype.lanes > 0;
  if (is_text) descr = fmt::format("<U{}", dtype.lanes);
  if ((dtype.lanes != 1 && !is_text) || dtype.bits % 8 != 0 || descr.empty() || !ParseDescr(descr)) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("numpy has no element type {}; write a .safetensors file", DTypeName(dtype)));
  }
  std::string dims;
  for (const std::int64_t dim : shape) dims += fmt::format("{}, ", dim);
  if (shape.size() > 1) dims.resize(dims.size() - 2);
  if (shape.size() == 1) dims.resize(dims.size() - 1);
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
}

}  // namespace rewire
