// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/generate/answer_text.h"
#include "rewire/serve/generate/generation.h"
#include "rewire/serve/http/exchange.h"
#include "rewire/serve/http/token_request.h"

namespace rewire::serve {

// TokenExchange: an exchange whose runs are the steps of a generation. Who derives from it words the answer.
class TokenExchange : public Exchange {
 public:
  Piece Begin(std::string_view body, Request* request) final;
  Piece Continue(Request* request) final;

 protected:
  // `asked` has what the path says.
  TokenExchange(TokenRequest asked, Service* service) : service_(service), asked_(std::move(asked)) {}

  const TokenRequest& asked() const { return asked_; }
  const Generation& generation() const { return *generation_; }
  bool has_sent() const { return has_sent_; }

  virtual HttpAnswer Error(const Status& status) const = 0;
  // The whole answer; `reason` is "stop" or "length".
  virtual std::string Whole(std::string_view text, Span<const std::int64_t> tokens,
                            const char* reason) const = 0;
  // The event of a further part of the answer, and those that end a stream.
  virtual std::string Part(std::string_view text, Span<const std::int64_t> tokens) const = 0;
  virtual std::string End(const char* reason) const = 0;

 private:
  Status BeginGeneration();
  // The piece with these events, and what comes behind it.
  Piece Next(std::string events, Request* request);
  Piece Fails(const Status& status) const;

  Service* const service_;
  TokenRequest asked_;
  std::unique_ptr<Generation> generation_;
  std::optional<AnswerText> text_;
  std::string whole_;      // the text, unless it is sent as events
  std::size_t sent_ = 0;   // tokens that have been sent as events
  bool has_sent_ = false;  // an event
};

}  // namespace rewire::serve
