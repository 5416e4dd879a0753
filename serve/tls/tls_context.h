// SPDX-License-Identifier: Apache-2.0
//
// TlsContext: the certificates of one end, from which its connections are made. TLS 1.2 and 1.3.
//
// Immutable; any number of threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/tls/tls_stream.h"

namespace rewire::serve {

// Files in PEM. An empty path: none.
struct TlsFiles {
  std::string certificate;  // with the certificates between it and a root behind it
  std::string key;          // of the certificate, without a password
  // The authorities that may sign the other end's certificate. A server without them asks for no certificate,
  // and a client without them takes those of the system.
  std::string authorities;

  bool empty() const { return certificate.empty() && key.empty() && authorities.empty(); }
};

class TlsContext {
 public:
  // `protocols` are those of ALPN that the server speaks, best first. A client that names others only is sent
  // away. Errors of both: kUnsupported without OpenSSL; kInvalidArgument for a file, with OpenSSL's reason,
  // and for a certificate without its key, or the other way round.
  static Result<std::shared_ptr<const TlsContext>> ForServer(const TlsFiles& files,
                                                             std::vector<std::string> protocols);
  static Result<std::shared_ptr<const TlsContext>> ForClient(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // A stream over a socket that does not block. The socket must stay as long as the stream. Null if there is
  // no memory.
  std::unique_ptr<TlsStream> Accept(int file) const;
  // `host` is the name or the address that the server's certificate must have.
  std::unique_ptr<TlsStream> Connect(int file, const std::string& host, const std::string& protocol) const;

 private:
  TlsContext(const OpenSsl* library, SSL_CTX* context) : library_(library), context_(context) {}
  static Result<std::shared_ptr<TlsContext>> Make(const TlsFiles& files);
  std::unique_ptr<TlsStream> Stream(int file) const;

  const OpenSsl* const library_;
  SSL_CTX* const context_;
  std::vector<std::string> protocols_;
};

}  // namespace rewire::serve
