// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/grpc_status.h"

#include "rewire/serve/core/percent_code.h"

namespace rewire::serve {

std::vector<Http2Header> GrpcTrailers(int code, std::string_view message) {
  std::vector<Http2Header> trailers = {{"grpc-status", std::to_string(code)}};
  if (message.empty()) return trailers;
  const auto is_plain = [](char c) { return c >= 0x20 && c <= 0x7e && c != '%'; };
  trailers.push_back({"grpc-message", PercentEncoded(message, is_plain)});
  return trailers;
}

std::optional<std::chrono::nanoseconds> ParseGrpcTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  // The largest, 99,999,999 hours, has more nanoseconds than a number here. A year is as good.
  constexpr std::chrono::hours kMost(24 * 365);
  switch (text.back()) {
    case 'n':
      return std::chrono::nanoseconds(value);
    case 'u':
      return std::chrono::microseconds(value);
    case 'm':
      return std::chrono::milliseconds(value);
    case 'S':
      return std::min<std::chrono::nanoseconds>(std::chrono::seconds(value), kMost);
    case 'M':
      return std::min<std::chrono::nanoseconds>(std::chrono::minutes(std::min<std::int64_t>(value, 1 << 20)),
                                                kMost);
    case 'H':
      return std::min<std::chrono::nanoseconds>(std::chrono::hours(std::min<std::int64_t>(value, 1 << 14)),
                                                kMost);
    default:
      return std::nullopt;
  }
}

}  // namespace rewire::serve
