// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/generation.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace rewire::serve {
namespace {

// Adds an input of integers, value(0) and so on. All lie in its last dimension.
template <typename Value>
Status AddIntegers(const GeneratorInput& of, std::size_t count, Request* request, const Value& value) {
  if (of.name.empty()) return {};
  const std::size_t element = of.dtype == kInt64 ? sizeof(std::int64_t) : sizeof(std::int32_t);
  std::byte* const data = request->memory.Allocate(count * element);
  if (data == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "input '{}': there is no memory for {} tokens", of.name, count);
  }
  InputTensor& input = request->inputs.emplace_back();
  input.name = of.name;
  input.dtype = of.dtype;
  input.shape.assign(of.rank, 1);
  if (of.rank > 0) input.shape.back() = static_cast<std::int64_t>(count);
  input.data = {data, count * element};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t wide = value(i);
    const auto narrow = static_cast<std::int32_t>(wide);
    std::memcpy(data + i * element, of.dtype == kInt64 ? static_cast<const void*>(&wide) : &narrow, element);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Generation>> Generation::Begin(std::shared_ptr<HeldModel> held,
                                                      std::vector<std::int64_t> prompt,
                                                      const GenerationOptions& options) {
  const Generator& generator = held->generator();
  const std::string& model = generator.model;
  if (prompt.empty()) return Fail(StatusCode::kInvalidArgument, "the prompt has no tokens");
  for (const std::int64_t token : prompt) {
    if (token >= 0 && (generator.vocabulary == 0 || token < generator.vocabulary)) continue;
    return Fail(StatusCode::kInvalidArgument, "the prompt has the token {}, which model '{}' does not have",
                token, model);
  }
  if (static_cast<std::int64_t>(prompt.size()) >= generator.settings.context) {
    return Fail(StatusCode::kInvalidArgument,
                "the prompt has {} tokens, and model '{}' takes {}, with those of the answer", prompt.size(),
                model, generator.settings.context);
  }
  return std::unique_ptr<Generation>(new Generation(std::move(held), std::move(prompt), options));
}

Generation::Generation(std::shared_ptr<HeldModel> model, std::vector<std::int64_t> prompt,
                       const GenerationOptions& options)
    : model_(std::move(model)),
      generator_(model_->generator()),
      prompt_size_(prompt.size()),
      most_(static_cast<std::size_t>(std::min(static_cast<std::int64_t>(prompt.size()) +
                                                  std::min(options.max_tokens, generator_.settings.context),
                                              generator_.settings.context))),
      tokens_(std::move(prompt)),
      deadline_(generator_.timeout_us == 0 ? Clock::time_point::max()
                                           : Clock::now() + std::chrono::microseconds(generator_.timeout_us)),
      sampler_(options.temperature, options.top_p, options.seed) {
  if (tokens_.size() >= most_) state_ = State::kFull;
  if (generator_.settings.prefix_bytes == 0 || state_ == State::kFull) return;
  prefix_ = model_->FindPrefix(this->prompt());
  reused_ = done_ = prefix_.size() * kCacheBlock;
}

// Says what the step finds in its state, and what is to be kept of it.
void Generation::FillCache(std::size_t total, CacheStep* cache) const {
  cache->total = static_cast<std::int64_t>(total);
  if (done_ == prefix_.size() * kCacheBlock) cache->begin = prefix_;
  const bool ends_prompt = done_ < prompt_size_ && total >= prompt_size_;
  if (generator_.settings.prefix_bytes == 0 || !ends_prompt) return;
  cache->keep_from = prefix_.size();
  cache->keep_to = prompt_size_ / kCacheBlock;
}

Status Generation::FillStep(Request* request) {
  request->Reset();
  request->held = model_;
  request->deadline = deadline_;
  if (!generator_.keeps_state) done_ = 0;
  step_ = generator_.step_size != 0 ? static_cast<std::size_t>(generator_.step_size) : tokens_.size() - done_;
  const std::size_t total = done_ + step_;
  const auto number = [](std::size_t value) {
    return [value](std::size_t) { return static_cast<std::int64_t>(value); };
  };
  for (const Status& added :
       {AddIntegers(generator_.tokens, step_, request, [this](std::size_t i) { return tokens_[done_ + i]; }),
        AddIntegers(generator_.positions, step_, request,
                    [this](std::size_t i) { return static_cast<std::int64_t>(done_ + i); }),
        AddIntegers(generator_.mask, total, request, number(1)),
        AddIntegers(generator_.last, 1, request, number(total - 1)),
        AddIntegers(generator_.total, 1, request, number(total))}) {
    if (!added) return added;
  }
  if (!generator_.settings.cache_dimension.empty()) FillCache(total, &request->cache);
  request->wanted.emplace_back().name = generator_.settings.logits;
  return {};
}

Status Generation::TakeStep(const Request& request) {
  if (!request.status) return request.status;
  if (request.state_lost) {
    done_ = prefix_.size() * kCacheBlock;
    return {};
  }
  if (!request.cache.kept.empty()) model_->KeepPrefix(prompt(), request.cache.keep_from, request.cache.kept);
  done_ += step_;
  if (done_ >= prompt_size_) prefix_.clear();
  if (done_ < tokens_.size()) return {};
  const OutputTensor& logits = request.results.front();
  const auto row = static_cast<std::size_t>(logits.shape.back());
  const std::size_t count = static_cast<std::size_t>(logits.bytes) / sizeof(float);
  const auto* const all = reinterpret_cast<const float*>(logits.data);
  const Result<std::int64_t> token =
      sampler_.Choose(count < row ? Span<const float>() : Span<const float>(all + (count - row), row));
  if (!token) return Forward(token);
  ++chosen_;
  const std::vector<std::int64_t>& end = generator_.settings.end;
  if (std::find(end.begin(), end.end(), *token) != end.end()) {
    state_ = State::kStopped;
    return {};
  }
  tokens_.push_back(*token);
  if (tokens_.size() >= most_) state_ = State::kFull;
  return {};
}

}  // namespace rewire::serve
