// SPDX-License-Identifier: Apache-2.0
//
// HttpConnection: one client. It reads a request, hands it on, sends the response, and goes on with the next
// one.
//
//   kHead ─▶ kBody ─▶ kWaiting ─▶ kSending ─▶ kHead
//
// A request that is asked for inference is the connection itself, so that nothing is allocated for it. An
// exchange goes from kWaiting to kSending and back, as often as it has runs and pieces.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/serve/core/front_end.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/served_loop.h"
#include "rewire/serve/http/body_memory.h"
#include "rewire/serve/http/exchange.h"
#include "rewire/serve/http/http_head.h"
#include "rewire/serve/http/http_response.h"
#include "rewire/serve/http/infer_json.h"
#include "rewire/serve/http/routes.h"
#include "rewire/serve/net/background.h"
#include "rewire/serve/net/event_loop.h"
#include "rewire/serve/net/served_socket.h"

namespace rewire::serve {

class HttpConnection;

// HttpLoop: shared by the connections of one loop. All but Post belongs to the loop's thread.
struct HttpLoop : ServedLoop {
  InferReader reader;
  std::vector<char> received =
      std::vector<char>(std::size_t{64} << 10);  // by any connection, until it takes it
  std::unordered_map<HttpConnection*, std::unique_ptr<HttpConnection>> connections;
  std::vector<std::unique_ptr<HttpConnection>> closed;  // in this turn
  std::vector<HttpConnection*> finished;                // requests whose response is to be sent

  // The request has finished, on any thread.
  void Post(HttpConnection* connection);

 private:
  std::mutex mutex_;
  std::vector<HttpConnection*> posted_;
};

class HttpConnection : public EventLoop::Handler, public Request {
 public:
  HttpConnection(HttpLoop* home, ServedSocket socket);
  ~HttpConnection() override;

  void OnEvents(std::uint32_t events) override;
  void Finish() override;

  // Sends the response of a request that has finished, and goes on.
  void OnFinished();
  // Called now and then: ends what takes too long.
  void CheckTime(Clock::time_point now);
  // Ends what the service does for it. No loop runs any more.
  void Abandon() {
    if (in_service_ && is_run_) home_->service->Cancel(this);
  }
  // Closes a connection that waits for a request, and lets another close after its response.
  void Drain();

 private:
  enum class State { kHead, kBody, kWaiting, kSending, kClosed };

  // Does what can be done without waiting.
  void Advance();
  bool ReadHead();  // false: nothing more can be done now
  bool ReadBody();
  bool Send();
  HttpError CheckHead(const HttpHead& head) const;
  // `rest` is what has arrived behind the head.
  void TakeHead(const HttpHead& head, std::string_view rest);
  void Dispatch();
  void Infer(const Route& route);
  // Submits the request, or goes on with its exchange.
  void Submit();
  void Go(Piece piece);
  void RespondToInfer();
  void Respond(const HttpAnswer& answer);
  void RespondWithError(const HttpError& error);
  void RespondAndClose(const HttpError& error);
  // Sends the response's text and tensors.
  void BeginSending(int status, const char* type, std::string_view extra);
  void BeginTransfer();
  void EndRequest();
  void Close();
  // Bytes from the socket: their number, 0 if there are none now, -1 if the client has gone.
  long Receive(void* memory, std::size_t room);

  HttpLoop* const home_;
  ServedSocket socket_;
  State state_ = State::kHead;
  bool readable_ = true;
  bool writable_ = true;
  bool keep_alive_ = true;
  bool is_11_ = true;
  bool client_ended_ = false;  // it sends nothing more
  bool in_service_ = false;    // Finish is still to come, or OnFinished
  bool is_run_ = false;        // otherwise: a task in the background
  Clock::time_point until_;    // of the state

  std::string input_;  // what has arrived of the next head
  std::string path_;
  std::string method_;
  Route route_;
  std::optional<std::uint64_t> json_bytes_;
  BodyMemory body_;

  ResponseForm form_;
  HttpAnswer answer_;  // of a task in the background
  std::unique_ptr<Exchange> exchange_;
  bool in_pieces_ = false;   // the first piece has been sent, or is being sent
  bool runs_again_ = false;  // behind this piece
  HttpResponse response_;
};

}  // namespace rewire::serve
