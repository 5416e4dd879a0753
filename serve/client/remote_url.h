// SPDX-License-Identifier: Apache-2.0
//
// The URL of a model on a server: grpc://HOST:PORT/MODEL[/VERSION] or http://HOST:PORT/MODEL[/VERSION], with
// grpcs:// and https:// for TLS.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/tls/tls_context.h"

namespace rewire::serve {

struct RemoteUrl {
  enum class Protocol : std::uint8_t { kHttp, kGrpc };
  Protocol protocol = Protocol::kHttp;
  std::string host;  // without the brackets of an IPv6 address
  std::string port;
  std::string model;           // %XX decoded
  std::string version;         // empty: the newest that is ready
  bool shared_memory = false;  // `?shared_memory` stands behind it
  // It is sent with every request; from the variable REWIRE_SERVER_TOKEN, so that it stands in no command
  // line and no message. Empty: none is sent.
  std::string token;
  // Null: without TLS. REWIRE_SERVER_CA names a file with the authorities that may have signed the server's
  // certificate, if they are not the system's. REWIRE_CLIENT_CERT and REWIRE_CLIENT_KEY name the files with
  // the certificate that a server may ask for, and with its key.
  std::shared_ptr<const TlsContext> tls;

  // "localhost:8001", as HTTP and gRPC name the server.
  std::string Authority() const;
};

// Whether a text is meant as such a URL, so that it is no path of a file.
bool IsRemoteUrl(std::string_view text);
// Errors: kInvalidArgument, with the form that is expected; those of TlsContext.
Result<RemoteUrl> ParseRemoteUrl(std::string_view text);

}  // namespace rewire::serve
