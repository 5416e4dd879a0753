// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/tls/tls_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>

namespace rewire::serve {
namespace {

constexpr std::size_t kRecord = std::size_t{16} << 10;  // the most bytes of one record

const OpenSsl* g_library = nullptr;  // for functions that OpenSSL calls; set once, when the method is made

int FileOf(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(g_library->BIO_get_data(bio)));
}

bool MayTryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int ReadSocket(BIO* bio, char* data, int size) {
  g_library->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  const ssize_t got = recv(FileOf(bio), data, static_cast<std::size_t>(size), 0);
  if (got < 0 && MayTryAgain()) g_library->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(got);
}

// OpenSSL's own way to a socket raises SIGPIPE, which would end a host that does not expect it.
int WriteSocket(BIO* bio, const char* data, int size) {
  g_library->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  const ssize_t sent = send(FileOf(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && MayTryAgain()) g_library->BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(sent);
}

long ControlSocket(BIO* /*bio*/, int command, long /*number*/, void* /*data*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* MakeMethod(const OpenSsl* library) {
  g_library = library;
  BIO_METHOD* const method = library->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
  if (method == nullptr) return nullptr;
  library->BIO_meth_set_read(method, ReadSocket);
  library->BIO_meth_set_write(method, WriteSocket);
  library->BIO_meth_set_ctrl(method, ControlSocket);
  return method;
}

}  // namespace

std::unique_ptr<TlsStream> TlsStream::Over(const OpenSsl* library, SSL* stream, int file) {
  std::unique_ptr<TlsStream> made(new TlsStream(library, stream));
  static const BIO_METHOD* const method = MakeMethod(library);
  BIO* const bio = method == nullptr ? nullptr : library->BIO_new(method);
  if (bio == nullptr) return nullptr;
  library->BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)));
  library->BIO_set_init(bio, 1);
  library->SSL_set_bio(stream, bio, bio);
  return made;
}

TlsStream::~TlsStream() { library_->SSL_free(ssl_); }

TlsStream::Step TlsStream::StepOf(int result) {
  switch (library_->SSL_get_error(ssl_, result)) {
    case SSL_ERROR_NONE:
      return Step::kDone;
    case SSL_ERROR_WANT_READ:
      return Step::kWantsRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantsWrite;
    default:
      break;
  }
  if (const long verified = library_->SSL_get_verify_result(ssl_); verified != X509_V_OK) {
    failure_ =
        std::string("the certificate is refused: ") + library_->X509_verify_cert_error_string(verified);
  } else {
    failure_ = library_->Reason("the other end has closed the connection");
  }
  return Step::kFailed;
}

TlsStream::Step TlsStream::Handshake() {
  library_->ERR_clear_error();
  return StepOf(library_->SSL_do_handshake(ssl_));
}

std::string_view TlsStream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  library_->SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

long TlsStream::Receive(void* memory, std::size_t room) {
  std::size_t used = 0;
  while (used < room) {
    library_->ERR_clear_error();
    const std::size_t most = std::min<std::size_t>(room - used, std::numeric_limits<int>::max());
    const int got = library_->SSL_read(ssl_, static_cast<char*>(memory) + used, static_cast<int>(most));
    if (got > 0) {
      used += static_cast<std::size_t>(got);
      continue;
    }
    // The next call meets the end again, if there is something to give before it.
    if (StepOf(got) == Step::kFailed && used == 0) return -1;
    break;
  }
  return static_cast<long>(used);
}

std::size_t TlsStream::pending() const { return static_cast<std::size_t>(library_->SSL_pending(ssl_)); }

long TlsStream::Send(const iovec* parts, std::size_t count) {
  const void* data = parts->iov_base;
  std::size_t size = parts->iov_len;
  if (size < kRecord && count > 1) {
    if (gathered_ == nullptr) gathered_ = std::make_unique<char[]>(kRecord);
    size = 0;
    for (std::size_t i = 0; i < count && size < kRecord; ++i) {
      const std::size_t taken = std::min(parts[i].iov_len, kRecord - size);
      std::memcpy(gathered_.get() + size, parts[i].iov_base, taken);
      size += taken;
    }
    data = gathered_.get();
  }
  library_->ERR_clear_error();
  const int sent = library_->SSL_write(
      ssl_, data, static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max())));
  if (sent > 0) return sent;
  return StepOf(sent) == Step::kFailed ? -1 : 0;
}

void TlsStream::EndSending() {
  library_->ERR_clear_error();
  library_->SSL_shutdown(ssl_);
}

}  // namespace rewire::serve
