// SPDX-License-Identifier: Apache-2.0
// Sizes and times as people write and read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"

namespace rewire::tools {

// "4096", "64K", "64M", "2G": powers of 1024; "KiB" and "KB" mean the same as "K". kInvalidArgument.
Result<std::uint64_t> ParseBytes(std::string_view text);
// "2s", "1.5s", "250ms", "80us". kInvalidArgument, also for more than a year.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// "N=4": the name of a dimension and its size, a whole number.
struct NamedSize {
  std::string name;
  std::int64_t size = 0;
};
// kInvalidArgument.
Result<NamedSize> ParseNamedSize(std::string_view text);

// Adds each "NAME=SIZE" to `sizes`; the later one of a name counts. `option` is what they were given for.
// Errors: kInvalidArgument, with the wrong text.
Status ParseSizes(const char* option, const std::vector<std::string>& texts,
                  std::map<std::string, std::int64_t>* sizes);

// "512 B", "1.5 KiB", "64.0 MiB".
std::string BytesText(std::uint64_t bytes);
// Three significant digits: "950 ns", "12.3 us", "1.20 ms", "2.00 s".
std::string DurationText(double nanoseconds);

}  // namespace rewire::tools
