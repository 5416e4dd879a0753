// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/serve/tls/tls_stream.h"

namespace rewire::serve {

// ServedSocket: the server's end of a connection, with TLS over it or without. It does not block. The
// protocols read and write here, so they do not know which it is.
class ServedSocket {
 public:
  // `tls` has its handshake behind it.
  explicit ServedSocket(Descriptor file, std::unique_ptr<TlsStream> tls = nullptr)
      : file_(std::move(file)), tls_(std::move(tls)) {}
  ServedSocket(ServedSocket&&) = default;
  ServedSocket& operator=(ServedSocket&&) = delete;
  ~ServedSocket() = default;

  int file() const { return file_.get(); }  // for the loop; -1 after Close
  bool has_tls() const { return tls_ != nullptr; }
  // Bytes that have arrived: their number, 0 if there are none now, -1 if the client has gone. Fewer than
  // there is room for: nothing is left.
  long Receive(void* memory, std::size_t room);
  // Bytes that the loop does not see, because TLS has them already.
  std::size_t pending() const { return tls_ == nullptr ? 0 : tls_->pending(); }
  // Sends what goes now: the number of bytes, 0 if none, -1 if the client has gone. After 0, the next call
  // begins with the same bytes.
  long Send(const iovec* parts, std::size_t count);
  // The client is told that nothing more comes.
  void EndSending();
  void Close();

 private:
  Descriptor file_;
  std::unique_ptr<TlsStream> tls_;  // goes before the descriptor
};

}  // namespace rewire::serve
