// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/options/option_types.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "rewire/tools/io/cli.h"

namespace rewire::tools {
namespace {

// "a whole number from 1 to 22", "a number of at least 0".
template <typename T>
Status Expected(const char* what, T least, T most, bool is_limited, std::string_view given) {
  const std::string range =
      is_limited ? fmt::format("from {} to {}", least, most) : fmt::format("of at least {}", least);
  return Fail(StatusCode::kInvalidArgument, fmt::format("expected {} {}, given '{}'", what, range, given));
}

}  // namespace

CLI::Option* AddRead(CLI::App* app, const std::string& names, const std::string& type,
                     const std::string& help, std::function<Status(const std::string&)> read) {
  const std::string name = names.substr(names.rfind(',') + 1);
  CLI::callback_t callback = [name, read = std::move(read)](const CLI::results_t& values) {
    for (const std::string& value : values) {
      if (Status taken = read(value); !taken) throw CLI::ValidationError(name, taken.error().message());
    }
    return true;
  };
  return app->add_option(names, std::move(callback), help)->type_name(type);
}

Result<std::uint64_t> ParseWholeNumber(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= least && number <= most) return number;
  // The largest number of a type is no limit that people set.
  const bool is_limited = most < std::numeric_limits<std::uint32_t>::max() / 2 ||
                          (error == std::errc() && stop == end && number > most) ||
                          error == std::errc::result_out_of_range;
  return Forward(Expected("a whole number", least, most, is_limited, text));
}

Result<double> ParseRealNumber(std::string_view text, double least, double most) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= least && number <= most) return number;
  return Forward(Expected("a number", least, most, std::isfinite(most), text));
}

CLI::Option* AddSize(CLI::App* app, const std::string& names, std::uint64_t* to, const std::string& help) {
  return AddRead(app, names, "SIZE", help, [to](const std::string& text) -> Status {
    const Result<std::uint64_t> bytes = ParseBytes(text);
    if (!bytes) return Forward(bytes);
    *to = *bytes;
    return {};
  });
}

CLI::Option* AddChoice(CLI::App* app, const std::string& names, std::string* to, const std::string& type,
                       const std::vector<std::string>& choices, const std::string& help) {
  return app->add_option(names, *to, help)->type_name(type)->check(OneOf(choices))->capture_default_str();
}

}  // namespace rewire::tools
