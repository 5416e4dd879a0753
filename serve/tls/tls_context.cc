// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/tls/tls_context.h"

#include <arpa/inet.h>

#include <string_view>
#include <utility>

namespace rewire::serve {
namespace {

// OpenSSL passes `context`, the TlsContext's protocols.
int SelectProtocol(SSL* /*stream*/, const unsigned char** selected, unsigned char* selected_size,
                   const unsigned char* offered, unsigned offered_size, void* context) {
  for (const std::string& ours : *static_cast<const std::vector<std::string>*>(context)) {
    // A list of names, each behind a byte with its size. OpenSSL has checked it.
    for (unsigned at = 0; at < offered_size; at += 1U + offered[at]) {
      const std::string_view name(reinterpret_cast<const char*>(offered + at + 1), offered[at]);
      if (name != ours) continue;
      *selected = offered + at + 1;
      *selected_size = offered[at];
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool IsAddress(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

TlsContext::~TlsContext() { library_->SSL_CTX_free(context_); }

Result<std::shared_ptr<TlsContext>> TlsContext::Make(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return Fail(
        StatusCode::kInvalidArgument, "{} is given without its {}: both are expected for TLS",
        files.key.empty() ? "the certificate '" + files.certificate + "'" : "the key '" + files.key + "'",
        files.key.empty() ? "key" : "certificate");
  }
  const Result<const OpenSsl*> found = FindOpenSsl();
  if (!found) return Forward(found);
  const OpenSsl& ssl = **found;
  ssl.ERR_clear_error();
  SSL_CTX* const made = ssl.SSL_CTX_new(ssl.TLS_method());
  if (made == nullptr) return Fail(StatusCode::kOutOfMemory, "OpenSSL has no memory for a context");
  std::shared_ptr<TlsContext> context(new TlsContext(&ssl, made));
  ssl.SSL_CTX_ctrl(made, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  // Bytes that are sent again may lie elsewhere then, and a part of them may go at once.
  ssl.SSL_CTX_ctrl(
      made, SSL_CTRL_MODE,
      SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS,
      nullptr);
  // A session that is taken up again would skip the check of the certificate's time.
  ssl.SSL_CTX_ctrl(made, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  ssl.SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  const auto refused = [&](const std::string& file, const char* what) {
    return Fail(StatusCode::kInvalidArgument, "{} is expected in PEM, and '{}' is none: {}", what, file,
                ssl.Reason("it cannot be read"));
  };
  if (!files.certificate.empty()) {
    if (ssl.SSL_CTX_use_certificate_chain_file(made, files.certificate.c_str()) != 1)
      return refused(files.certificate, "a certificate");
    if (ssl.SSL_CTX_use_PrivateKey_file(made, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        ssl.SSL_CTX_check_private_key(made) != 1) {
      return refused(files.key, "the key of the certificate");
    }
  }
  if (!files.authorities.empty() && ssl.SSL_CTX_load_verify_file(made, files.authorities.c_str()) != 1)
    return refused(files.authorities, "a list of authorities");
  return context;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::ForServer(const TlsFiles& files,
                                                                std::vector<std::string> protocols) {
  if (files.certificate.empty() && files.key.empty())
    return Fail(StatusCode::kInvalidArgument,
                "a certificate and its key are expected for TLS, and neither is given");
  Result<std::shared_ptr<TlsContext>> made = Make(files);
  if (!made) return Forward(made);
  TlsContext& context = **made;
  const OpenSsl& ssl = *context.library_;
  context.protocols_ = std::move(protocols);
  ssl.SSL_CTX_set_alpn_select_cb(context.context_, SelectProtocol, &context.protocols_);
  if (!files.authorities.empty()) {
    ssl.SSL_CTX_set_verify(context.context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // Clients that have several certificates choose by these names.
    ssl.SSL_CTX_set_client_CA_list(context.context_, ssl.SSL_load_client_CA_file(files.authorities.c_str()));
  }
  return std::shared_ptr<const TlsContext>(*std::move(made));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::ForClient(const TlsFiles& files) {
  Result<std::shared_ptr<TlsContext>> made = Make(files);
  if (!made) return Forward(made);
  const TlsContext& context = **made;
  if (files.authorities.empty()) context.library_->SSL_CTX_set_default_verify_paths(context.context_);
  context.library_->SSL_CTX_set_verify(context.context_, SSL_VERIFY_PEER, nullptr);
  return std::shared_ptr<const TlsContext>(*std::move(made));
}

std::unique_ptr<TlsStream> TlsContext::Stream(int file) const {
  SSL* const stream = library_->SSL_new(context_);
  return stream == nullptr ? nullptr : TlsStream::Over(library_, stream, file);
}

std::unique_ptr<TlsStream> TlsContext::Accept(int file) const {
  std::unique_ptr<TlsStream> stream = Stream(file);
  if (stream != nullptr) library_->SSL_set_accept_state(stream->ssl());
  return stream;
}

std::unique_ptr<TlsStream> TlsContext::Connect(int file, const std::string& host,
                                               const std::string& protocol) const {
  std::unique_ptr<TlsStream> stream = Stream(file);
  if (stream == nullptr) return nullptr;
  SSL* const ssl = stream->ssl();
  library_->SSL_set_connect_state(ssl);
  const std::string offered = std::string(1, static_cast<char>(protocol.size())) + protocol;
  library_->SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(offered.data()),
                                static_cast<unsigned>(offered.size()));
  if (IsAddress(host)) {
    // A server is not asked for an address by name (RFC 6066).
    if (library_->X509_VERIFY_PARAM_set1_ip_asc(library_->SSL_get0_param(ssl), host.c_str()) != 1)
      return nullptr;
  } else {
    if (library_->SSL_set1_host(ssl, host.c_str()) != 1) return nullptr;
    std::string name = host;
    library_->SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  }
  return stream;
}

}  // namespace rewire::serve
