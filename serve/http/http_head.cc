// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_head.h"

#include <algorithm>
#include <array>

#include "rewire/serve/core/percent_code.h"
#include "rewire/serve/http/http_text.h"

namespace rewire::serve {
namespace {

// Characters of methods and names of headers.
constexpr std::array<bool, 256> kIsTokenChar = [] {
  std::array<bool, 256> is{};
  for (char c = 'a'; c <= 'z'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (char c = '0'; c <= '9'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) is[static_cast<std::size_t>(c)] = true;
  return is;
}();
bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return kIsTokenChar[static_cast<unsigned char>(c)]; });
}
bool IsControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

// Whether a list such as "keep-alive, TE" has the word.
bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (EqualsIgnoringCase(Trimmed(list.substr(0, comma)), word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

HttpError Bad(std::string text) { return {400, std::move(text)}; }

HttpError ReadLine(std::string_view line, HttpHead* head) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first || !IsToken(line.substr(0, first))) {
    return Bad("the request line is not 'METHOD TARGET HTTP/1.1'");
  }
  head->method = line.substr(0, first);
  head->target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (head->target.empty() || std::any_of(head->target.begin(), head->target.end(), [](char c) {
        return c == ' ' || IsControl(c) || c == '\t' || static_cast<unsigned char>(c) >= 0x80;
      })) {
    return Bad("the target of the request has characters that must be escaped");
  }
  if (head->target.front() != '/') return Bad("the target of the request does not begin with '/'");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return version.substr(0, 5) == "HTTP/" ? HttpError{505, "this server speaks HTTP/1.1"}
                                           : Bad("the request line is not 'METHOD TARGET HTTP/1.1'");
  }
  head->is_11 = version == "HTTP/1.1";
  head->keep_alive = head->is_11;
  return {};
}

// Seen: headers that may come once.
struct Seen {
  bool host = false;
};

HttpError ReadHeader(std::string_view line, HttpHead* head, Seen* seen) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return Bad("a header is not 'NAME: VALUE'");
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), [](char c) { return IsControl(c); })) {
    return Bad("the header '" + std::string(name) + "' has a control character");
  }
  if (EqualsIgnoringCase(name, "content-length")) {
    const std::optional<std::uint64_t> number = DecimalNumber(value);
    if (!number || head->has_length) return Bad("Content-Length must be one number, given once");
    head->has_length = true;
    head->content_length = *number;
  } else if (EqualsIgnoringCase(name, "transfer-encoding")) {
    return {501, "Transfer-Encoding is not supported: send the body with Content-Length"};
  } else if (EqualsIgnoringCase(name, "content-encoding")) {
    if (!EqualsIgnoringCase(value, "identity")) {
      return {415, "Content-Encoding is not supported: send the body as it is"};
    }
  } else if (EqualsIgnoringCase(name, "inference-header-content-length")) {
    head->json_bytes = DecimalNumber(value);
    if (!head->json_bytes) return Bad("Inference-Header-Content-Length must be a number");
  } else if (EqualsIgnoringCase(name, "connection")) {
    if (HasWord(value, "close")) head->keep_alive = false;
    if (HasWord(value, "keep-alive")) head->keep_alive = true;
  } else if (EqualsIgnoringCase(name, "authorization")) {
    if (!head->authorization.empty()) return Bad("Authorization is given twice");
    head->authorization = value;
  } else if (EqualsIgnoringCase(name, "expect")) {
    if (!EqualsIgnoringCase(value, "100-continue")) return {417, "only 100-continue can be expected"};
    head->expects_continue = true;
  } else if (EqualsIgnoringCase(name, "host")) {
    if (seen->host) return Bad("Host is given twice");
    seen->host = true;
  }
  return {};
}

}  // namespace

HeadResult ParseHead(std::string_view bytes, const FrontEndLimits& limits, HttpHead* head) {
  std::size_t at = 0;
  while (bytes.substr(at, 2) == "\r\n") at += 2;
  *head = {};
  Seen seen;
  for (std::size_t lines = 0;; ++lines) {
    const std::size_t end = bytes.find('\n', at);
    if (end == std::string_view::npos || end + 1 > limits.header_bytes) {
      if (bytes.size() < limits.header_bytes && end == std::string_view::npos) return {};
      return {
          0,
          {431, "the head of the request has more than " + std::to_string(limits.header_bytes) + " bytes"}};
    }
    if (end == at || bytes[end - 1] != '\r')
      return {0, Bad("a line of the head does not end with CR and LF")};
    const std::string_view line = bytes.substr(at, end - 1 - at);
    at = end + 1;
    HttpError error;
    if (lines == 0) {
      error = ReadLine(line, head);
    } else if (line.empty()) {
      if (head->is_11 && !seen.host) return {0, Bad("the header Host is missing")};
      return {at, {}};
    } else if (lines > limits.header_count) {
      error = {431, "the request has more than " + std::to_string(limits.header_count) + " headers"};
    } else {
      error = ReadHeader(line, head, &seen);
    }
    if (error.status != 0) return {0, std::move(error)};
  }
}

std::optional<std::string> DecodePath(std::string_view target) {
  std::optional<std::string> decoded = PercentDecoded(target.substr(0, target.find('?')));
  if (decoded &&
      std::any_of(decoded->begin(), decoded->end(), [](char c) { return IsControl(c) || c == '\t'; }))
    return std::nullopt;
  return decoded;
}

const char* HttpReason(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

}  // namespace rewire::serve
