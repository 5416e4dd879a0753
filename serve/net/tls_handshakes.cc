// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/tls_handshakes.h"

#include <sys/epoll.h>

#include <string>
#include <utility>

namespace rewire::serve {

class TlsHandshakes::One final : public EventLoop::Handler {
 public:
  One(TlsHandshakes* home, Descriptor file)
      : home_(home),
        file_(std::move(file)),
        stream_(home->context_->Accept(file_.get())),
        timer_(home->loop_->At(home->loop_->now() + kTime, [this] { home_->Remove(this); })) {}
  ~One() override {
    home_->loop_->Cancel(timer_);
    if (file_.is_open() && watched_ != 0) home_->loop_->Remove(file_.get(), this);
  }

  // It is gone afterwards if the handshake is over.
  void OnEvents(std::uint32_t /*events*/) override {
    const TlsStream::Step step = stream_ == nullptr ? TlsStream::Step::kFailed : stream_->Handshake();
    switch (step) {
      case TlsStream::Step::kWantsRead:
        return Watch(EPOLLIN);
      case TlsStream::Step::kWantsWrite:
        return Watch(EPOLLOUT);
      case TlsStream::Step::kFailed:
        return home_->Remove(this);
      case TlsStream::Step::kDone:
        break;
    }
    if (watched_ != 0) home_->loop_->Remove(file_.get(), this);
    TlsHandshakes* const home = home_;
    const std::string protocol(stream_->protocol());
    ServedSocket socket(std::move(file_), std::move(stream_));
    home->Remove(this);
    home->done_(std::move(socket), protocol);
  }

 private:
  void Watch(std::uint32_t events) {
    if (events == watched_) return;
    const Status watched = watched_ == 0 ? home_->loop_->Add(file_.get(), events, this)
                                         : home_->loop_->Change(file_.get(), events, this);
    if (!watched) return home_->Remove(this);
    watched_ = events;
  }

  TlsHandshakes* const home_;
  Descriptor file_;
  std::unique_ptr<TlsStream> stream_;  // goes before the descriptor
  const EventLoop::Timer timer_;
  std::uint32_t watched_ = 0;  // events
};

TlsHandshakes::TlsHandshakes(EventLoop* loop, std::shared_ptr<const TlsContext> context, Done done)
    : loop_(loop), context_(std::move(context)), done_(std::move(done)) {}

TlsHandshakes::~TlsHandshakes() { Stop(); }

void TlsHandshakes::Stop() { all_.clear(); }

void TlsHandshakes::Take(Descriptor client) {
  if (all_.size() >= kMost) return;
  auto one = std::make_unique<One>(this, std::move(client));
  One* const handler = one.get();
  all_.emplace(handler, std::move(one));
  handler->OnEvents(0);
}

void TlsHandshakes::Remove(One* one) { all_.erase(one); }

}  // namespace rewire::serve
