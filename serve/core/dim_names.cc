// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/dim_names.h"

#include <algorithm>
#include <charconv>

#include "rewire/serve/core/percent_code.h"

namespace rewire::serve {
namespace {

// A name that begins with a digit is no size.
constexpr char kSymbol = '~';

}  // namespace

std::string DimNamesText(Span<const Dim> dims, const std::vector<std::string>& symbols) {
  std::string text;
  for (const Dim dim : dims) {
    if (!text.empty()) text += ',';
    if (IsSymbol(dim)) {
      const std::string& name = symbols[SymbolOf(dim)];
      const bool letter = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && name[0] != kSymbol;
      text += (letter ? std::string() : std::string(1, kSymbol)) + PercentEncoded(name, IsPlainInPath);
    } else {
      text += dim < 0 ? "?" : std::to_string(dim);
    }
  }
  return text;
}

std::optional<std::vector<Dim>> ParseDimNames(std::string_view text, std::vector<std::string>* symbols) {
  std::vector<Dim> dims;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (part.empty()) return std::nullopt;
    if (part == "?") {
      dims.push_back(kUnknownDim);
      continue;
    }
    if (part[0] >= '0' && part[0] <= '9') {
      Dim size = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
      if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
      dims.push_back(size);
      continue;
    }
    if (part[0] == kSymbol) part.remove_prefix(1);
    const std::optional<std::string> name = PercentDecoded(part);
    if (!name) return std::nullopt;
    const auto found = std::find(symbols->begin(), symbols->end(), *name);
    dims.push_back(SymbolDim(static_cast<std::uint32_t>(found - symbols->begin())));
    if (found == symbols->end()) symbols->push_back(*name);
  }
  return dims;
}

}  // namespace rewire::serve
