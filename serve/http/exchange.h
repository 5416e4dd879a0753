// SPDX-License-Identifier: Apache-2.0
//
// Exchange: a request over HTTP whose answer takes runs of a model, one after the other, and may be sent
// piece by piece.
//
//   Begin ─▶ run ─▶ Continue ─▶ run ─▶ Continue ─▶ ... ─▶ the end
//
// The connection submits each run, and sends each piece before the next run. So a client that reads slowly
// stops the runs, and one that goes ends the run that goes on.
#pragma once

#include <memory>
#include <string_view>

#include "rewire/serve/core/request.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/http/routes.h"

namespace rewire::serve {

// Piece: what is sent of a response now, and what comes behind it.
struct Piece {
  HttpAnswer answer;      // a piece of a stream: `body` is the next bytes, the rest counts for the first one
  bool streamed = false;  // false, without another run: the answer is whole
  bool run = false;       // the request has been filled for another run
};

// It belongs to the loop's thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Reads the body, which is followed by kJsonPadding readable bytes, and fills the request for the first
  // run. The exchange keeps what the request's views refer to, but for the body, which stays.
  virtual Piece Begin(std::string_view body, Request* request) = 0;
  // The run has ended: the request has its status and results.
  virtual Piece Continue(Request* request) = 0;
};

// Null if the path is not that of an exchange. The route's views must outlive it.
std::unique_ptr<Exchange> MakeExchange(const Route& route, Service* service);

}  // namespace rewire::serve
