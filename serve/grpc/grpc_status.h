// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/serve/grpc/http2_connection.h"

namespace rewire::serve {

// The codes of gRPC that no Status has.
enum class GrpcCode : int {
  kOk = 0,
  kInvalidArgument = 3,
  kNotFound = 5,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnauthenticated = 16
};

// The trailers that end a call. The message may have any bytes; they are sent as gRPC encodes them.
std::vector<Http2Header> GrpcTrailers(int code, std::string_view message);

// The header grpc-timeout: up to 8 digits and a unit. Nothing if it is malformed.
std::optional<std::chrono::nanoseconds> ParseGrpcTimeout(std::string_view text);

}  // namespace rewire::serve
