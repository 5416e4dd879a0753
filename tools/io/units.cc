// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "rewire/base/checked_math.h"

namespace rewire::tools {
namespace {

struct Unit {
  std::string_view name;
  double nanoseconds;
};
constexpr std::array<Unit, 4> kTimes{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

// The letters that stand for 1024, 1024^2, ... behind a size.
constexpr std::string_view kPowers = "KMGT";

std::optional<std::uint64_t> Factor(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  const std::size_t power = kPowers.find(unit[0]);
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos || (!rest.empty() && rest != "B" && rest != "iB")) return std::nullopt;
  return std::uint64_t{1} << (10 * (power + 1));
}

}  // namespace

Result<std::uint64_t> ParseBytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::optional<std::uint64_t> factor =
      Factor(text.substr(static_cast<std::size_t>(end - text.data())));
  const std::optional<std::uint64_t> bytes = factor ? CheckedMul(number, *factor) : std::nullopt;
  if (error == std::errc() && bytes) return *bytes;
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("'{}' is no size in bytes: expected a number such as 4096, 64K, 64M or 2G", text));
}

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr double kYear = 365.25 * 24 * 3600 * 1e9;
  for (const Unit& known : kTimes) {
    if (error != std::errc() || unit != known.name) continue;
    const double nanoseconds = number * known.nanoseconds;
    if (nanoseconds >= 0 && nanoseconds <= kYear) {
      return std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
    }
  }
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("'{}' is no time: expected a number and a unit, such as 2s, 250ms or 80us", text));
}

Result<NamedSize> ParseNamedSize(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals != std::string_view::npos && equals > 0) {
    const std::string_view number = text.substr(equals + 1);
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), size);
    if (error == std::errc() && end == number.data() + number.size() && size >= 0)
      return NamedSize{std::string(text.substr(0, equals)), size};
  }
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("'{}' is no size of a dimension: expected NAME=SIZE, such as N=4", text));
}

std::string BytesText(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double number = static_cast<double>(bytes);
  std::size_t power = 0;
  for (; power < kPowers.size() && number >= 1024; ++power) number /= 1024;
  return fmt::format("{:.1f} {}iB", number, kPowers[power - 1]);
}

std::string DurationText(double nanoseconds) {
  std::size_t i = 0;
  // 999.5 would be printed with four digits.
  while (i + 1 < kTimes.size() && nanoseconds >= 999.5 * kTimes[i].nanoseconds) ++i;
  const double number = nanoseconds / kTimes[i].nanoseconds;
  const int decimals = i == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", number, decimals, kTimes[i].name);
}

Status ParseSizes(const char* option, const std::vector<std::string>& texts,
                  std::map<std::string, std::int64_t>* sizes) {
  for (const std::string& text : texts) {
    const Result<NamedSize> parsed = ParseNamedSize(text);
    if (!parsed) return Forward(parsed, option);
    (*sizes)[parsed->name] = parsed->size;
  }
  return {};
}

}  // namespace rewire::tools
