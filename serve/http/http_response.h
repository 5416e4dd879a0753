// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/serve/net/served_socket.h"

namespace rewire::serve {

// HttpResponse: one response, and how much of it has been sent. It keeps its memory from one to the next.
class HttpResponse {
 public:
  enum class Sent { kAll, kPart, kGone };

  // The body: a text, and tensors behind it that stay where they are until all is sent.
  std::string text;
  std::vector<Span<const std::byte>> tensors;

  // Makes the head for the body. `extra` are more headers, each with its end of line.
  void Begin(int status, std::string_view type, std::string_view extra, bool keep_alive);
  std::size_t body_bytes() const { return body_bytes_; }
  // Sends what the socket takes now.
  Sent Send(ServedSocket* socket);

 private:
  std::string head_;
  std::size_t body_bytes_ = 0;
  std::vector<iovec> parts_;  // what is to be sent, from part_ on
  std::size_t part_ = 0;
};

}  // namespace rewire::serve
