// SPDX-License-Identifier: Apache-2.0
//
// The head of a request of HTTP/1.1: request line and headers (RFC 9112), as far as this server uses them.
//
// Heads that several programs on the way could read differently are refused: a second Content-Length,
// Transfer-Encoding, spaces before a colon, folded lines, control characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/serve/core/front_end.h"

namespace rewire::serve {

struct HttpHead {
  std::string_view method;
  std::string_view target;  // as it was sent: path, perhaps with a query
  bool is_11 = true;        // HTTP/1.1, and not 1.0, which has no bodies in chunks
  bool keep_alive = true;
  bool expects_continue = false;
  bool has_length = false;
  std::string_view authorization;
  std::uint64_t content_length = 0;
  std::optional<std::uint64_t> json_bytes;  // Inference-Header-Content-Length
};

// An answer without a model: the connection is closed behind it.
struct HttpError {
  int status = 0;  // 0: none
  std::string text;
};

struct HeadResult {
  std::size_t bytes = 0;  // of the head; 0: more bytes are needed, or there is an error
  HttpError error;
};

// Reads a head from the beginning of `bytes`. The views of `head` lie in `bytes`. Empty lines before it are
// skipped.
HeadResult ParseHead(std::string_view bytes, const FrontEndLimits& limits, HttpHead* head);

// The path of a target without its query, with %XX decoded. Nothing if an escape is damaged or stands for a
// control character.
std::optional<std::string> DecodePath(std::string_view target);

// "OK", "Not Found" and so on.
const char* HttpReason(int status);

}  // namespace rewire::serve
