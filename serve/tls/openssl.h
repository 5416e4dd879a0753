// SPDX-License-Identifier: Apache-2.0
//
// The functions of OpenSSL 3 that TLS needs. They are found in the system's library when the first connection
// wants TLS, so that programs without TLS neither need nor load it.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "rewire/base/status.h"

namespace rewire::serve {

#define REWIRE_OPENSSL_FUNCTIONS(X)     \
  X(BIO_clear_flags)                    \
  X(BIO_get_data)                       \
  X(BIO_meth_free)                      \
  X(BIO_meth_new)                       \
  X(BIO_meth_set_ctrl)                  \
  X(BIO_meth_set_read)                  \
  X(BIO_meth_set_write)                 \
  X(BIO_new)                            \
  X(BIO_set_data)                       \
  X(BIO_set_flags)                      \
  X(BIO_set_init)                       \
  X(ERR_clear_error)                    \
  X(ERR_get_error)                      \
  X(ERR_reason_error_string)            \
  X(SSL_CTX_check_private_key)          \
  X(SSL_CTX_ctrl)                       \
  X(SSL_CTX_free)                       \
  X(SSL_CTX_load_verify_file)           \
  X(SSL_CTX_new)                        \
  X(SSL_CTX_set_alpn_select_cb)         \
  X(SSL_CTX_set_client_CA_list)         \
  X(SSL_CTX_set_default_verify_paths)   \
  X(SSL_CTX_set_options)                \
  X(SSL_CTX_set_verify)                 \
  X(SSL_CTX_use_PrivateKey_file)        \
  X(SSL_CTX_use_certificate_chain_file) \
  X(SSL_ctrl)                           \
  X(SSL_do_handshake)                   \
  X(SSL_free)                           \
  X(SSL_get0_alpn_selected)             \
  X(SSL_get0_param)                     \
  X(SSL_get_error)                      \
  X(SSL_get_verify_result)              \
  X(SSL_load_client_CA_file)            \
  X(SSL_new)                            \
  X(SSL_pending)                        \
  X(SSL_read)                           \
  X(SSL_set1_host)                      \
  X(SSL_set_accept_state)               \
  X(SSL_set_alpn_protos)                \
  X(SSL_set_bio)                        \
  X(SSL_set_connect_state)              \
  X(SSL_shutdown)                       \
  X(SSL_write)                          \
  X(TLS_method)                         \
  X(X509_VERIFY_PARAM_set1_ip_asc)      \
  X(X509_verify_cert_error_string)

struct OpenSsl {
#define REWIRE_OPENSSL_MEMBER(name) decltype(&::name) name = nullptr;
  REWIRE_OPENSSL_FUNCTIONS(REWIRE_OPENSSL_MEMBER)
#undef REWIRE_OPENSSL_MEMBER

  // Why the last call of this thread has failed; `otherwise` if OpenSSL does not say.
  const char* Reason(const char* otherwise) const;
};

// The same functions for the life of the process. Any thread. Errors: kUnsupported, with what to install.
Result<const OpenSsl*> FindOpenSsl();

}  // namespace rewire::serve
