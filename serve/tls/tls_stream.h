// SPDX-License-Identifier: Apache-2.0
//
// TlsStream: one end of a connection by TLS, over a socket that does not block and that somebody else owns.
//
// One thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "rewire/serve/tls/openssl.h"

namespace rewire::serve {

class TlsStream {
 public:
  enum class Step { kDone, kWantsRead, kWantsWrite, kFailed };

  // Takes over `stream`. Null if there is no memory.
  static std::unique_ptr<TlsStream> Over(const OpenSsl* library, SSL* stream, int file);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Goes on with the handshake as far as the socket lets it. Call it again when the socket is ready.
  Step Handshake();
  // The protocol that both ends have agreed on by ALPN; empty if the client has named none.
  std::string_view protocol() const;

  // Receives what has arrived, until nothing is left or the room is full. Returns the bytes, 0 if there are
  // none now, -1 if the other end has gone.
  long Receive(void* memory, std::size_t room);
  // Bytes that have been received from the socket, and that Receive gives without it.
  std::size_t pending() const;
  // Sends what the socket takes of the parts. Returns the bytes, 0 if it takes none now, -1 if the other end
  // has gone. After 0, the next call must begin with the same bytes.
  long Send(const iovec* parts, std::size_t count);
  // Tells the other end that nothing more comes.
  void EndSending();

  // Why the handshake or the connection has failed.
  const std::string& failure() const { return failure_; }
  SSL* ssl() { return ssl_; }

 private:
  TlsStream(const OpenSsl* library, SSL* stream) : library_(library), ssl_(stream) {}
  // Says what the last call, which gave `result`, has met.
  Step StepOf(int result);

  const OpenSsl* const library_;
  SSL* const ssl_;
  std::unique_ptr<char[]> gathered_;  // small parts, so that they make one record
  std::string failure_;
};

}  // namespace rewire::serve
