// SPDX-License-Identifier: Apache-2.0
//
// Generation: one text that a generator makes, step by step.
//
//   FillStep ─▶ run of the request ─▶ TakeStep ─▶ FillStep ─▶ ... until it has ended
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/generate/generator.h"
#include "rewire/serve/generate/sampling.h"

namespace rewire::serve {

struct GenerationOptions {
  std::int64_t max_tokens = 16;
  double temperature = 1;
  double top_p = 1;
  std::uint64_t seed = 0;
};

// One thread at a time.
class Generation {
 public:
  enum class State { kRuns, kStopped, kFull };  // kFull: max_tokens, or the context, is reached

  // Errors: kInvalidArgument for a prompt that is empty, has tokens that the model does not have, or is
  // longer, together with one token, than the context.
  static Result<std::unique_ptr<Generation>> Begin(std::shared_ptr<HeldModel> model,
                                                   std::vector<std::int64_t> prompt,
                                                   const GenerationOptions& options);

  // Makes the request, whatever it was before, the next step. It refers to memory of this object. Errors:
  // kOutOfMemory.
  Status FillStep(Request* request);
  // Takes the answer of a step, which may be a part of the prompt alone and give no token. Errors: those of
  // the request, and of Sampler.
  Status TakeStep(const Request& request);
  // Ends it before the model does.
  void Stop() { state_ = State::kStopped; }

  State state() const { return state_; }
  const Generator& generator() const { return generator_; }
  Span<const std::int64_t> prompt() const { return {tokens_.data(), prompt_size_}; }
  // All tokens but the prompt, without one that ended the answer.
  Span<const std::int64_t> made() const {
    return {tokens_.data() + prompt_size_, tokens_.size() - prompt_size_};
  }
  std::size_t prompt_size() const { return prompt_size_; }
  // Tokens of the prompt that were not read, because the state behind them was kept.
  std::size_t reused() const { return reused_; }
  // How many tokens were chosen, with the one that ended the answer.
  std::size_t chosen() const { return chosen_; }

 private:
  Generation(std::shared_ptr<HeldModel> model, std::vector<std::int64_t> prompt,
             const GenerationOptions& options);
  void FillCache(std::size_t total, CacheStep* cache) const;

  const std::shared_ptr<HeldModel> model_;
  const Generator& generator_;
  const std::size_t prompt_size_;
  const std::size_t most_;
  std::vector<std::int64_t> tokens_;
  CacheBlocks prefix_;  // where the state begins, until the prompt is read
  std::size_t reused_ = 0;
  std::size_t done_ = 0;  // tokens that the model has read
  std::size_t step_ = 0;  // tokens of the step that runs
  const Clock::time_point deadline_;
  std::size_t chosen_ = 0;
  State state_ = State::kRuns;
  Sampler sampler_;
};

}  // namespace rewire::serve
