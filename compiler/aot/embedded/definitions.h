// SPDX-License-Identifier: Apache-2.0
//
// Definitions: what the calls of a source share, in front of its functions. Those with the same text are
// one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rewire::aot {

class Definitions {
 public:
  explicit Definitions(std::string prefix) : prefix_(std::move(prefix)) {}

  // Each returns the name of what is defined: a constant `struct rewire_embedded_TYPE` with this content,
  std::string Struct(const std::string& type, const std::string& content);
  // constant integers of 32 bits, constant floats,
  std::string Integers(const std::vector<std::int64_t>& numbers);
  std::string Floats(const std::vector<double>& numbers);
  // and a function, or what else has a name: NAME stands for it in the text.
  std::string Function(const std::string& text);

  const std::string& text() const { return text_; }

 private:
  std::string Named(const char* kind, const std::string& text);

  std::string prefix_;
  std::string text_{};
  std::map<std::string, std::string> names_{};  // by text
};

// "{1, 2}"; C knows no empty list, so that has a 0.
std::string Braced(const std::vector<std::int64_t>& numbers);
// A float as C spells it.
std::string FloatText(double number);

}  // namespace rewire::aot
