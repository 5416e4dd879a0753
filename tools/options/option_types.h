// SPDX-License-Identifier: Apache-2.0
//
// Options of a command line that have a number, a size, a time or one of several words as their value. A
// wrong value is told in the same words by every tool: the option, what it expects, and what is given.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {

// Adds an option whose value is handed to `read`. What that says of a wrong one stands behind the option's
// name. `type` is the value in --help.
CLI::Option* AddRead(CLI::App* app, const std::string& names, const std::string& type,
                     const std::string& help, std::function<Status(const std::string&)> read);

// A decimal whole number from `least` to `most`. kInvalidArgument.
Result<std::uint64_t> ParseWholeNumber(std::string_view text, std::uint64_t least, std::uint64_t most);
// A number from `least` to `most`, which may be infinite. kInvalidArgument.
Result<double> ParseRealNumber(std::string_view text, double least, double most);

template <typename T>
CLI::Option* AddWholeNumber(CLI::App* app, const std::string& names, T* to, const std::string& type,
                            const std::string& help, std::uint64_t least = 0,
                            std::uint64_t most = std::numeric_limits<T>::max()) {
  return AddRead(app, names, type, help, [=](const std::string& text) -> Status {
    const Result<std::uint64_t> number = ParseWholeNumber(text, least, most);
    if (!number) return Forward(number);
    *to = static_cast<T>(*number);
    return {};
  });
}

// `to` is a double, or an optional one.
template <typename T>
CLI::Option* AddRealNumber(CLI::App* app, const std::string& names, T* to, const std::string& type,
                           const std::string& help, double least = 0,
                           double most = std::numeric_limits<double>::infinity()) {
  return AddRead(app, names, type, help, [=](const std::string& text) -> Status {
    const Result<double> number = ParseRealNumber(text, least, most);
    if (!number) return Forward(number);
    *to = *number;
    return {};
  });
}

// Bytes, as in 64M.
CLI::Option* AddSize(CLI::App* app, const std::string& names, std::uint64_t* to, const std::string& help);

// A time, as in 250ms. `to` is nanoseconds, or an optional of them.
template <typename T>
CLI::Option* AddTime(CLI::App* app, const std::string& names, T* to, const std::string& help) {
  return AddRead(app, names, "TIME", help, [=](const std::string& text) -> Status {
    const Result<std::chrono::nanoseconds> time = ParseDuration(text);
    if (!time) return Forward(time);
    *to = *time;
    return {};
  });
}

// One of `choices`; the value that `to` has is shown as the default.
CLI::Option* AddChoice(CLI::App* app, const std::string& names, std::string* to, const std::string& type,
                       const std::vector<std::string>& choices, const std::string& help);

}  // namespace rewire::tools
