// SPDX-License-Identifier: Apache-2.0
//
// A request for inference, as every front end hands it to the Service, and its response.
//
// The front end owns the request and what its views refer to. It keeps both unchanged from Service::Submit
// until Finish is called. Strings are views into the receive buffer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/arena.h"
#include "rewire/serve/core/cache_block.h"

namespace rewire::serve {

using Clock = std::chrono::steady_clock;

struct Sequence;
class HeldModel;

struct Parameter {
  std::string_view name;
  std::variant<bool, std::int64_t, double, std::string_view> value;
};

// The place of a request in a sequence of requests, whose state the Service keeps between them.
struct SequenceStep {
  std::variant<std::int64_t, std::string_view> id = std::int64_t{0};  // 0 or an empty text: in none
  bool start = false;                                                 // the first one
  bool end = false;                                                   // the last one
};

// CacheStep: the positions that a step of a held generator reads, writes and keeps in its caches
// (GeneratorSettings::cache_dimension).
struct CacheStep {
  std::int64_t total = 0;  // positions that have been written behind the step; 0: there are none
  CacheBlocks begin;       // what the first step of a sequence finds written
  // The blocks that are to be kept behind the step: from the first number up to the second.
  std::size_t keep_from = 0;
  std::size_t keep_to = 0;
  CacheBlocks kept;       // the answer; empty if there is no memory for them
  std::int64_t room = 0;  // the Service's own: positions that the state is to have
};

// One input: a contiguous tensor in the receive buffer, or in a region of shared memory.
struct InputTensor {
  std::string_view name;
  DLDataType dtype{};
  std::vector<std::int64_t> shape;
  // It is used where it lies if it is aligned to its elements, and copied otherwise.
  Span<const std::byte> data;
  std::shared_ptr<const void> owner;  // keeps a region; null for a receive buffer
  bool is_state = false;              // the Service's own: it comes from the state of the sequence
};

// One output that the client names. A request that names none gets all outputs, in the model's order.
struct WantedOutput {
  std::string_view name;
  // Above 0: as many of its largest elements are wanted in place of the tensor (run/classification.h).
  std::uint32_t classes = 0;
  // The tensor is written here, in a region of the client's. Empty: in memory of the response.
  Span<std::byte> place;
  std::shared_ptr<const void> owner;  // keeps the region
};

// One tensor of the response.
struct OutputTensor {
  std::string_view name;  // lives as long as Request::model
  DLDataType dtype{};
  std::vector<std::int64_t> shape;
  // In Request::memory, in Request::batch, or the place that the client gave.
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t wanted = 0;  // index in Request::wanted; without that, the number of the output
};

class Request {
 public:
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  virtual ~Request() = default;

  // Called once for each Submit, when `status` and `results` are set: before Submit returns, in Lane::Run, or
  // later on any thread. The Service does not touch the request again. It must not block, and it must not
  // call Submit or Lane::Run.
  virtual void Finish() = 0;

  // The question.
  std::string_view model;
  std::string_view version;  // empty: the newest that is ready
  std::string_view id;
  SequenceStep step;
  // In place of model, version and step: a step of what is held (Service::HoldGenerator).
  std::shared_ptr<HeldModel> held;
  CacheStep cache;  // with `held` alone
  std::vector<Parameter> parameters;
  std::vector<InputTensor> inputs;
  std::vector<WantedOutput> wanted;
  // The request ends with kDeadlineExceeded when this has passed, whether it waits or runs.
  Clock::time_point deadline = Clock::time_point::max();

  // The answer.
  Status status;
  std::vector<OutputTensor> results;
  std::string_view
      used_model;  // names of the model and version that answered; they live as long as `program`
  std::string_view used_version;
  std::shared_ptr<const void> program;  // the model's version
  std::shared_ptr<const void> batch;    // memory of the batch that the results are parts of; may be null
  Arena memory;                         // outputs that are made for this request alone
  // A step of what is held has been undone with all before it, because others that ran with it have failed.
  // There are no results. The next step must begin anew.
  bool state_lost = false;

  // Makes the request empty, so that it can be filled again. Vectors and `memory` keep their room.
  void Reset();

  // The Service's own.
  Clock::time_point submitted;
  std::shared_ptr<Sequence> sequence;  // as long as the request is a step of it
  std::int64_t rows = 0;               // of the model's batch dimension; 0 if it has none
  std::atomic<bool> cancelled{false};
};

}  // namespace rewire::serve
