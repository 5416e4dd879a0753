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
  // How a client knows where the body ends.
  enum class Framing { kLength, kChunks, kClose };

  // The body: a text, and tensors behind it that stay where they are until all is sent. Of a body in pieces:
  // the next piece.
  std::string text;
  std::vector<Span<const std::byte>> tensors;

  // Makes the head for the body. `extra` are more headers, each with its end of line. `is_head`: the body is
  // left out, as in responses to HEAD.
  void Begin(int status, std::string_view type, std::string_view extra, bool keep_alive, bool is_head);
  // The same for a body in pieces, of which AddPiece sends each. kChunks is for clients of HTTP/1.1. With
  // kClose, the connection must be closed at the end.
  void BeginPieces(int status, std::string_view type, Framing framing, bool keep_alive);
  // The piece before it has been sent. The last one may be empty, and no other.
  void AddPiece(bool is_last);
  std::size_t body_bytes() const { return body_bytes_; }
  // Sends what the socket takes now.
  Sent Send(ServedSocket* socket);

 private:
  void WriteHead(int status, std::string_view type, std::string_view extra, bool keep_alive);
  void Add(std::string_view bytes);

  std::string head_;
  std::string end_;  // of a chunk
  Framing framing_ = Framing::kLength;
  std::size_t body_bytes_ = 0;
  std::vector<iovec> parts_;  // what is to be sent, from part_ on
  std::size_t part_ = 0;
};

}  // namespace rewire::serve
