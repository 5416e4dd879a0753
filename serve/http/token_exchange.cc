// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/token_exchange.h"

#include <utility>
#include <vector>

#include "rewire/serve/http/server_sent_events.h"

namespace rewire::serve {

Piece TokenExchange::Begin(std::string_view body, Request* request) {
  if (Status read = ReadTokenRequest(body, &asked_); !read) return {Error(read)};
  if (Status begun = BeginGeneration(); !begun) return {Error(begun)};
  return Next({}, request);
}

Status TokenExchange::BeginGeneration() {
  Result<std::shared_ptr<HeldModel>> held = service_->HoldGenerator(asked_.model);
  if (!held) return Forward(held);
  Result<std::vector<std::int64_t>> prompt = PromptOf(asked_, (*held)->generator());
  if (!prompt) return Forward(prompt);
  Result<std::unique_ptr<Generation>> begun =
      Generation::Begin(*std::move(held), *std::move(prompt), asked_.options);
  if (!begun) return Forward(begun);
  generation_ = *std::move(begun);
  const std::shared_ptr<const Tokenizer>& tokenizer = generation_->generator().tokenizer;
  if (tokenizer != nullptr) text_.emplace(tokenizer, generation_->prompt(), std::move(asked_.stop));
  return {};
}

Piece TokenExchange::Continue(Request* request) {
  if (Status taken = generation_->TakeStep(*request); !taken) return Fails(taken);
  std::string further;
  if (text_) {
    const bool is_last = generation_->state() != Generation::State::kRuns;
    Result<std::string> text = text_->Take(generation_->made(), is_last);
    if (!text) return Fails(Forward(text));
    if (text_->stopped()) generation_->Stop();
    further = *std::move(text);
  }
  const Span<const std::int64_t> tokens = generation_->made().subspan(sent_);
  if (!asked_.stream || (tokens.empty() && further.empty())) {
    whole_ += further;
    return Next({}, request);
  }
  sent_ = generation_->made().size();
  std::string event = Part(further, tokens);
  has_sent_ = true;
  return Next(std::move(event), request);
}

Piece TokenExchange::Next(std::string events, Request* request) {
  if (generation_->state() == Generation::State::kRuns) {
    if (Status filled = generation_->FillStep(request); !filled) return Fails(filled);
    return {{200, std::move(events), kEventStream}, asked_.stream, true};
  }
  const char* const reason = generation_->state() == Generation::State::kStopped ? "stop" : "length";
  if (!asked_.stream) return {{200, Whole(whole_, generation_->made(), reason), "application/json"}};
  return {{200, events + End(reason), kEventStream}, true, false};
}

// Behind events, an error is an event, too.
Piece TokenExchange::Fails(const Status& status) const {
  HttpAnswer error = Error(status);
  if (!has_sent_) return {std::move(error)};
  return {{200, ServerSentEvent(error.body), kEventStream}, true, false};
}

}  // namespace rewire::serve
