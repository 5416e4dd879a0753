// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/remote_url.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include "rewire/serve/core/percent_code.h"

namespace rewire::serve {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kGrpc = "grpc://";
constexpr std::string_view kSharedMemory = "shared_memory";

bool TakePrefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

Status Wrong(std::string_view text, const char* what) {
  return Fail(StatusCode::kInvalidArgument,
              "'{}': {}; grpc://HOST:PORT/MODEL or http://HOST:PORT/MODEL is expected, with /VERSION and "
              "?shared_memory behind it if they are wanted",
              text, what);
}

bool IsPort(std::string_view port) {
  if (port.empty() || port.size() > 5) return false;
  int number = 0;
  for (const char digit : port) {
    if (digit < '0' || digit > '9') return false;
    number = number * 10 + (digit - '0');
  }
  return number >= 1 && number <= 65535;
}

}  // namespace

std::string RemoteUrl::Authority() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return (bracketed ? "[" + host + "]" : host) + ":" + port;
}

bool IsRemoteUrl(std::string_view text) {
  return text.substr(0, kHttp.size()) == kHttp || text.substr(0, kGrpc.size()) == kGrpc;
}

Result<RemoteUrl> ParseRemoteUrl(std::string_view text) {
  RemoteUrl url;
  if (const char* const token = std::getenv("REWIRE_SERVER_TOKEN"); token != nullptr) url.token = token;
  if (url.token.find_first_of("\r\n") != std::string::npos)
    return Fail(StatusCode::kInvalidArgument, "REWIRE_SERVER_TOKEN has more than one line");
  std::string_view rest = text;
  if (TakePrefix(&rest, kGrpc)) {
    url.protocol = RemoteUrl::Protocol::kGrpc;
  } else if (!TakePrefix(&rest, kHttp)) {
    return Wrong(text, "this is no URL of a model");
  }
  if (const std::size_t query = rest.find('?'); query != std::string_view::npos) {
    if (rest.substr(query + 1) != kSharedMemory) return Wrong(text, "its query is unknown");
    url.shared_memory = true;
    rest = rest.substr(0, query);
  }
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return Wrong(text, "the model is missing");
  const std::string_view server = rest.substr(0, slash);
  const std::size_t colon = server.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !IsPort(server.substr(colon + 1)))
    return Wrong(text, "the server is no HOST:PORT");
  std::string_view host = server.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  url.host = host;
  url.port = server.substr(colon + 1);
  const std::string_view path = rest.substr(slash + 1);
  const std::size_t behind = path.find('/');
  std::optional<std::string> model = PercentDecoded(path.substr(0, behind));
  if (!model || model->empty()) return Wrong(text, "the model's name is missing or damaged");
  url.model = *std::move(model);
  if (behind == std::string_view::npos) return url;
  url.version = path.substr(behind + 1);
  if (url.version.empty() || url.version.find_first_not_of("0123456789") != std::string::npos)
    return Wrong(text, "the version is no number");
  return url;
}

}  // namespace rewire::serve
