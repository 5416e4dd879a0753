// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/remote_url.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include "rewire/serve/core/percent_code.h"

namespace rewire::serve {
namespace {

struct Scheme {
  std::string_view prefix;
  RemoteUrl::Protocol protocol;
  bool tls;
};
constexpr Scheme kSchemes[] = {
    {"http://", RemoteUrl::Protocol::kHttp, false},
    {"https://", RemoteUrl::Protocol::kHttp, true},
    {"grpc://", RemoteUrl::Protocol::kGrpc, false},
    {"grpcs://", RemoteUrl::Protocol::kGrpc, true},
};
constexpr std::string_view kSharedMemory = "shared_memory";

// Null if the text begins with none.
const Scheme* SchemeOf(std::string_view text) {
  for (const Scheme& scheme : kSchemes) {
    if (text.substr(0, scheme.prefix.size()) == scheme.prefix) return &scheme;
  }
  return nullptr;
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Status Wrong(std::string_view text, const char* what) {
  return Fail(
      StatusCode::kInvalidArgument,
      "'{}': {}; grpc://HOST:PORT/MODEL or http://HOST:PORT/MODEL is expected (grpcs:// or https:// for "
      "TLS), with /VERSION and ?shared_memory behind it if they are wanted",
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

bool IsRemoteUrl(std::string_view text) { return SchemeOf(text) != nullptr; }

Result<RemoteUrl> ParseRemoteUrl(std::string_view text) {
  RemoteUrl url;
  url.token = Variable("REWIRE_SERVER_TOKEN");
  if (url.token.find_first_of("\r\n") != std::string::npos)
    return Fail(StatusCode::kInvalidArgument, "REWIRE_SERVER_TOKEN has more than one line");
  const Scheme* const scheme = SchemeOf(text);
  if (scheme == nullptr) return Wrong(text, "this is no URL of a model");
  url.protocol = scheme->protocol;
  std::string_view rest = text.substr(scheme->prefix.size());
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
  if (behind != std::string_view::npos) {
    url.version = path.substr(behind + 1);
    if (url.version.empty() || url.version.find_first_not_of("0123456789") != std::string::npos)
      return Wrong(text, "the version is no number");
  }
  if (!scheme->tls) return url;
  Result<std::shared_ptr<const TlsContext>> tls = TlsContext::ForClient(
      {Variable("REWIRE_CLIENT_CERT"), Variable("REWIRE_CLIENT_KEY"), Variable("REWIRE_SERVER_CA")});
  if (!tls) return Forward(tls);
  url.tls = *std::move(tls);
  return url;
}

}  // namespace rewire::serve
