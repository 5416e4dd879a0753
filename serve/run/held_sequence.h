// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "rewire/serve/core/service.h"
#include "rewire/serve/generate/generator.h"
#include "rewire/serve/run/model_queue.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::serve {

// HeldSequence: a HeldModel of the service over models.
class HeldSequence final : public HeldModel {
 public:
  // `sequence` is null if the model keeps no state.
  HeldSequence(std::shared_ptr<ModelQueue> queue, std::shared_ptr<Sequence> sequence)
      : queue_(std::move(queue)), sequence_(std::move(sequence)) {}
  HeldSequence(const HeldSequence&) = delete;
  HeldSequence& operator=(const HeldSequence&) = delete;
  ~HeldSequence() override {
    if (sequence_ != nullptr) queue_->EndHeld(sequence_.get());
  }

  const Generator& generator() const override { return *queue_->model().generator; }
  CacheBlocks FindPrefix(Span<const std::int64_t> prompt) override { return queue_->prefixes().Find(prompt); }
  void KeepPrefix(Span<const std::int64_t> prompt, std::size_t first, const CacheBlocks& blocks) override {
    queue_->prefixes().Keep(prompt, first, blocks);
  }
  const std::shared_ptr<ModelQueue>& queue() const { return queue_; }
  const std::shared_ptr<Sequence>& sequence() const { return sequence_; }

 private:
  const std::shared_ptr<ModelQueue> queue_;
  const std::shared_ptr<Sequence> sequence_;
};

}  // namespace rewire::serve
