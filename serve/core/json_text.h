// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

// Appends values to a text, with commas where they belong.
class JsonText {
 public:
  explicit JsonText(std::string* text) : text_(text) {}

  JsonText& Begin(char bracket);  // '{' or '['
  JsonText& End(char bracket);    // '}' or ']'
  JsonText& Key(std::string_view key);
  JsonText& String(std::string_view value);  // bytes that are no UTF-8 are replaced
  JsonText& Number(std::int64_t value);
  JsonText& Number(std::uint64_t value);
  JsonText& Bool(bool value);
  // A value that is JSON already.
  JsonText& Raw(std::string_view json);
  JsonText& Numbers(const std::vector<std::int64_t>& values);

  // All elements of a tensor as one array: floats by the fewest digits that give the same float again.
  // Errors: kUnsupported for types that JSON requests cannot have either, FP16 and BF16; kRuntimeFailed for
  // NaN and infinities.
  Status Elements(const OutputTensor& tensor);
  // The same, but one element stands for itself.
  Status ElementOrList(const OutputTensor& tensor);

 private:
  void Comma();

  std::string* text_;
  bool first_ = true;
};

// {"error": "..."}
std::string ErrorJson(std::string_view message);

}  // namespace rewire::serve
