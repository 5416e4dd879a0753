// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/value_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/tools/measure/resident.h"
#include "rewire/tools/run/text_tensors.h"

namespace rewire::tools {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Anything that starts like a number; what the dtype makes of it is judged when it is read.
bool StartsNumber(std::string_view text) {
  if (text.substr(0, 1) == "-" || text.substr(0, 1) == "+") text.remove_prefix(1);
  return !text.empty() && (IsDigit(text[0]) || text[0] == '.' || text.substr(0, 3) == "inf" ||
                           text.substr(0, 3) == "nan" || text == "true" || text == "false");
}

// "1x3xf32" in two. False when it is no shape and dtype at all.
bool SplitShape(std::string_view text, std::vector<std::int64_t>* shape, DLDataType* dtype) {
  while (!text.empty() && IsDigit(text[0])) {
    std::int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (error != std::errc() || text.empty() || text[0] != 'x') return false;
    text.remove_prefix(1);
    shape->push_back(dim);
  }
  const std::optional<DLDataType> parsed = ParseDType(text);
  if (!parsed) return false;
  *dtype = *parsed;
  return true;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<ValueSpec> Parse() {
    do {
      if (Status value = ParseItem(); !value) return Forward(value);
      // A tree's fields follow; everything else ends a field, and perhaps the trees around it.
      while (!open_.empty() && expects_separator_) {
        if (At(")")) {
          ++position_;
          open_.pop_back();
        } else if (At(",")) {
          ++position_;
          expects_separator_ = false;
        } else {
          return Wrong("expected ',' or ')'");
        }
      }
    } while (!open_.empty());
    if (position_ != text_.size()) return Wrong("unexpected text after the value");
    return std::move(nodes_);
  }

 private:
  Status Wrong(const std::string& what) const {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("{} at column {} of '{}'", what, position_ + 1, text_));
  }
  bool At(std::string_view token) const { return text_.substr(position_, token.size()) == token; }

  // Up to the next separator; at the top level a file's name may hold any.
  std::string_view Token() const {
    const std::size_t end = open_.empty() ? text_.size() : text_.find_first_of(",()", position_);
    return text_.substr(position_, end == std::string_view::npos ? end : end - position_);
  }

  Status ParseItem() {
    expects_separator_ = true;
    if (!open_.empty()) ++nodes_[open_.back()].field_count;
    if (At("@")) return ParseFile();
    const std::size_t paren = text_.find('(', position_);
    const std::string_view tag = text_.substr(position_, paren - position_);
    if (paren != std::string_view::npos && std::all_of(tag.begin(), tag.end(), IsDigit)) return OpenTree(tag);
    const std::string_view token = text_.substr(position_, text_.find_first_of(",()", position_) - position_);
    if (token.find('=') != std::string_view::npos) return ParseTensor(token);
    if (StartsNumber(token)) return ParseNumber(token);
    std::error_code failed;
    const bool is_file = open_.empty() && std::filesystem::exists(text_.substr(position_), failed);
    return Wrong(
        fmt::format("expected @file, SHAPExDTYPE=NUMBERS, a number or '('{}",
                    is_file ? fmt::format("; write @{} for the file", text_.substr(position_)) : ""));
  }

  Status OpenTree(std::string_view tag) {
    if (open_.size() == kMaxSpecDepth) return Wrong(fmt::format("trees nest deeper than {}", kMaxSpecDepth));
    SpecNode node;
    node.kind = SpecNode::Kind::kTree;
    if (!tag.empty()) {
      std::uint32_t value = 0;
      if (std::from_chars(tag.data(), tag.data() + tag.size(), value).ec != std::errc()) {
        return Wrong("the tag does not fit 32 bits");
      }
      node.tag = value;
    }
    position_ += tag.size() + 1;
    open_.push_back(nodes_.size());
    nodes_.push_back(std::move(node));
    expects_separator_ = At(")");
    return {};
  }

  Status ParseFile() {
    ++position_;
    const std::string_view path = Token();
    if (path.empty()) return Wrong("expected a file's name after '@'");
    SpecNode node;
    node.text = path;
    nodes_.push_back(std::move(node));
    position_ += path.size();
    return {};
  }

  Status ParseNumber(std::string_view token) {
    SpecNode node;
    node.kind = SpecNode::Kind::kNumber;
    node.text = token;
    nodes_.push_back(std::move(node));
    position_ += token.size();
    return {};
  }

  // `token` is "1x3xf32=1": the shape, the dtype and the first number.
  Status ParseTensor(std::string_view token) {
    const std::size_t equals = token.find('=');
    SpecNode node;
    if (!SplitShape(token.substr(0, equals), &node.tensor.shape, &node.tensor.dtype)) {
      return Wrong(fmt::format("'{}' is no shape and dtype such as 1x3xf32", token.substr(0, equals)));
    }
    const Result<std::uint64_t> bytes = CompactBytes(node.tensor.dtype, node.tensor.shape);
    if (!bytes) return Forward(bytes);
    if (Status fits = CheckMachineHas(*bytes); !fits) return Wrong(fits.error().message());
    if (!text::HasElementText(node.tensor.dtype)) {
      return Wrong(
          fmt::format("dtype {} cannot be written as text; use a file", DTypeName(node.tensor.dtype)));
    }
    position_ += equals + 1;
    if (token.substr(equals + 1) == "random") {
      node.kind = SpecNode::Kind::kRandom;
      position_ += std::string_view("random").size();
      nodes_.push_back(std::move(node));
      return {};
    }
    node.kind = SpecNode::Kind::kLiteral;
    if (Status elements = ParseElements(*bytes, &node.tensor); !elements) return elements;
    nodes_.push_back(std::move(node));
    return {};
  }

  Status ParseElements(std::uint64_t bytes, HostTensor* tensor) {
    const std::size_t element_bytes = ElementBytes(tensor->dtype);
    const std::size_t expected = static_cast<std::size_t>(bytes) / element_bytes;
    std::byte* data = nullptr;
    tensor->bytes = AllocateBytes(static_cast<std::size_t>(bytes), &data);
    std::byte first[16] = {};
    std::size_t given = 0;
    for (;;) {
      const std::string_view rest = text_.substr(position_);
      const std::string_view number = rest.substr(0, rest.find_first_of(",()"));
      if (number.empty() && given == 0) break;
      std::byte* element = given < expected ? data + given * element_bytes : first;
      if (Status parsed = text::ParseElement(tensor->dtype, number, element); !parsed) {
        return Wrong(parsed.error().message());
      }
      if (given == 0) std::copy_n(element, element_bytes, first);
      ++given;
      position_ += number.size();
      // In a tree a comma goes on with the numbers only if a number follows.
      const std::string_view next = text_.substr(std::min(position_ + 1, text_.size()));
      const std::string_view candidate = next.substr(0, next.find_first_of(",()"));
      if (!At(",") || candidate.find('=') != std::string_view::npos || !StartsNumber(candidate)) break;
      ++position_;
    }
    if (given == 1 && expected > 1) {
      for (std::size_t i = 1; i < expected; ++i) std::copy_n(first, element_bytes, data + i * element_bytes);
    } else if (given != expected) {
      return Wrong(fmt::format("{} numbers for {}, expected {}, or one for all", given,
                               TensorTypeText(tensor->dtype, tensor->shape), expected));
    }
    return {};
  }

  std::string_view text_;
  std::size_t position_ = 0;
  ValueSpec nodes_;
  std::vector<std::size_t> open_;  // trees whose ')' has not been read
  bool expects_separator_ = false;
};

// The target before the first "=", and the rest. False without one.
bool SplitTarget(std::string_view text, std::string* target, std::string_view* rest) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  *target = text.substr(0, equals);
  *rest = text.substr(equals + 1);
  return true;
}

}  // namespace

bool IsArchivePath(std::string_view path) { return path.ends_with(".npz") || path.ends_with(".safetensors"); }

Result<ValueSpec> ParseValueSpec(std::string_view text) {
  if (text.substr(0, 1) != "[" && text.substr(0, 1) != "\"") return Parser(text).Parse();
  const Result<TextArray> array = ParseTexts(text);
  if (!array) return Forward(array);
  Result<HostTensor> tensor = TensorOfTexts(*array);
  if (!tensor) return Forward(tensor);
  SpecNode node;
  node.kind = SpecNode::Kind::kLiteral;
  node.tensor = *std::move(tensor);
  return ValueSpec{std::move(node)};
}

Result<ValueBinding> ParseValueBinding(std::string_view text) {
  ValueBinding binding;
  if (text.substr(0, 1) == "@") {
    binding.archive = text.substr(1);
    if (IsArchivePath(binding.archive)) return binding;
    return Fail(
        StatusCode::kInvalidArgument,
        fmt::format("'{}' does not say what it is for: write NAME={}, or name an .npz or .safetensors "
                    "file, whose members are taken by name",
                    text, text));
  }
  std::string_view rest;
  if (!SplitTarget(text, &binding.target, &rest)) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("'{}': expected NAME=VALUE or INDEX=VALUE, such as x=@x.npy", text));
  }
  Result<ValueSpec> value = ParseValueSpec(rest);
  if (!value) return Forward(value);
  binding.value = *std::move(value);
  return binding;
}

Result<FileBinding> ParseFileBinding(std::string_view text) {
  FileBinding binding;
  std::string_view rest = text;
  if (text.substr(0, 1) != "@" && !SplitTarget(text, &binding.target, &rest)) rest = {};
  if (rest.size() < 2 || rest[0] != '@') {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("'{}': expected NAME=@FILE, INDEX=@FILE or @FILE.npz for all", text));
  }
  binding.path = rest.substr(1);
  if (binding.target.empty() && !IsArchivePath(binding.path)) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("'{}' does not say which output it is for: write NAME={}, or name an .npz or "
                            ".safetensors file",
                            text, text));
  }
  return binding;
}

}  // namespace rewire::tools
