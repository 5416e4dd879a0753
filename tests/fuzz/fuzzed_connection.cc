// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/fuzzed_connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/serve/net/event_loop.h"

namespace rewire::fuzz {
namespace {

// Answers are made within one turn of the loop, and sent in the next one. Some turns more are for what other
// threads do.
constexpr int kQuietTurns = 4;
// By time, since another thread may wait long for a CPU on a busy machine while the loop makes its turns.
constexpr std::chrono::seconds kMostTime{60};

[[noreturn]] void Complain(const char* what, std::string_view answer) {
  std::cerr << what << ": '" << answer << "'\n";
  std::abort();
}

// The client's end of a connection.
class Client {
 public:
  Client(std::string_view bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
      Complain("no pair of sockets", {});
    file_ = Descriptor(ends[0]);
    servers_ = Descriptor(ends[1]);
  }

  Descriptor TakeServers() { return std::move(servers_); }
  const std::string& answer() const { return answer_; }
  // Sends a piece and reads what has come. Returns whether the client has nothing more to do. `runs` is how
  // many runs there have been: more may lie between two pieces of an answer.
  bool Turn(std::uint64_t runs) {
    const bool ran = std::exchange(runs_, runs) != runs;
    quiet_ = Receive() || Send() || ran ? 0 : quiet_ + 1;
    return quiet_ >= kQuietTurns;
  }
  void Close() { file_.Close(); }

 private:
  bool Send() {
    if (bytes_.empty() || gone_) return false;
    const ssize_t sent = send(file_.get(), bytes_.data(), std::min(piece_, bytes_.size()), MSG_NOSIGNAL);
    gone_ = sent < 0 && errno != EAGAIN;
    bytes_.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    return sent > 0;
  }
  bool Receive() {
    std::array<char, 4096> some;
    const ssize_t got = recv(file_.get(), some.data(), some.size(), 0);
    if (got <= 0) return false;
    answer_.append(some.data(), static_cast<std::size_t>(got));
    return true;
  }

  Descriptor file_;
  Descriptor servers_;
  std::string_view bytes_;
  const std::size_t piece_;
  std::string answer_;
  bool gone_ = false;
  std::uint64_t runs_ = 0;
  int quiet_ = 0;
};

std::size_t PieceOf(std::string_view bytes) {
  constexpr std::array<std::size_t, 4> kPieces = {1 << 20, 1, 13, 200};
  return bytes.empty() ? 1 : kPieces[static_cast<unsigned char>(bytes.back()) % kPieces.size()];
}

}  // namespace

std::string SendBytes(test::FakeService* service, const MakeFrontEnd& make, std::string_view bytes,
                      std::string_view question, std::string_view answer) {
  serve::FrontEndLimits limits;
  limits.body_bytes = 1 << 20;
  limits.json_bytes = 1 << 16;
  const std::unique_ptr<serve::EventLoop> loop = *serve::EventLoop::Make();
  const std::unique_ptr<serve::Lane> lane = service->MakeLane();
  const std::unique_ptr<serve::FrontEnd> front_end = make(service, limits);
  loop->OnTurn([&] {
    lane->Run();
    return false;
  });
  const serve::FrontEnd::Taker taker = front_end->Open(loop.get(), lane.get());
  Client stranger(bytes, PieceOf(bytes)), other(question, question.size());
  Client* now = &stranger;
  const auto late = std::chrono::steady_clock::now() + kMostTime;
  loop->OnTurn([&] {
    if (loop->now() > late) Complain("the connection does not end", stranger.answer());
    if (now != nullptr && now->Turn(service->answered)) {
      now->Close();
      now = now == &stranger ? &other : nullptr;
      if (now != nullptr) taker(serve::ServedSocket(now->TakeServers()));
    }
    if (now == nullptr && front_end->open_connections() == 0 && service->in_flight() == 0) loop->Stop();
    return true;
  });
  loop->Post([&] { taker(serve::ServedSocket(stranger.TakeServers())); });
  loop->Run();
  if (other.answer().find(answer) == std::string::npos)
    Complain("another client gets a wrong answer", other.answer());
  return stranger.answer();
}

}  // namespace rewire::fuzz
