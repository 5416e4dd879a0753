// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/embedded/definitions.h"

#include <fmt/format.h>

#include <cmath>

namespace rewire::aot {

std::string Definitions::Named(const char* kind, const std::string& text) {
  const auto [found, made] = names_.try_emplace(text, fmt::format("{}_{}_{}", prefix_, kind, names_.size()));
  if (made) {
    std::string definition = text;
    constexpr std::string_view kName = "NAME";
    for (std::size_t at = 0; (at = definition.find(kName, at)) != std::string::npos;
         at += found->second.size()) {
      definition.replace(at, kName.size(), found->second);
    }
    text_ += definition;
  }
  return found->second;
}

std::string Definitions::Struct(const std::string& type, const std::string& content) {
  return Named("call", fmt::format("static const struct rewire_embedded_{} NAME = {};\n", type, content));
}

std::string Definitions::Integers(const std::vector<std::int64_t>& numbers) {
  return Named("steps", fmt::format("static const int32_t NAME[] = {};\n", Braced(numbers)));
}

std::string Definitions::Floats(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(FloatText(number));
  return Named("numbers", fmt::format("static const float NAME[] = {{{}}};\n", fmt::join(texts, ", ")));
}

std::string Definitions::Function(const std::string& text) { return Named("row", text); }

std::string Braced(const std::vector<std::int64_t>& numbers) {
  return numbers.empty() ? "{0}" : fmt::format("{{{}}}", fmt::join(numbers, ", "));
}

std::string FloatText(double number) {
  const auto narrow = static_cast<float>(number);
  if (std::isnan(narrow)) return "NAN";
  if (std::isinf(narrow)) return narrow < 0 ? "-INFINITY" : "INFINITY";
  std::string text = fmt::format("{:.9g}", narrow);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

}  // namespace rewire::aot
