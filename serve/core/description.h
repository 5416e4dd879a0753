// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of the Service and its models, which front ends word as their protocol does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"

namespace rewire::serve {

struct ServerDescription {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;
};

struct TensorDescription {
  std::string name;
  DLDataType dtype{};
  std::vector<std::int64_t> shape;  // -1: any size
  std::string dims;                 // names of the dimensions (core/dim_names.h)
};

struct BatchSettings {
  // The most rows of the batch dimension that one run takes. 0: requests are not put together.
  std::int64_t max_batch_size = 0;
  // How long a request may wait for others while an instance is idle.
  std::uint64_t max_queue_delay_us = 0;
  // Sizes at which a batch is run at once although the delay is not over.
  std::vector<std::int64_t> preferred_sizes;
  // Sizes that a batch may have; it is filled up with zeroes to the next one. Empty: any.
  std::vector<std::int64_t> allowed_sizes;
  // Requests are run together even if that takes longer than one by one.
  bool always = false;
};

// State that the server keeps for a sequence of requests.
struct SequenceSettings {
  // From the name of an output to that of the input that has its value in the next step. Empty: the model
  // keeps no state.
  std::map<std::string, std::string> state;
  // Sizes of symbolic dimensions that a new state has and no input of a request gives. Others are 0.
  std::map<std::string, std::int64_t> sizes;
  std::uint32_t max_sequences = 1000;
  std::uint64_t max_bytes = 0;       // of the state of all; 0: no limit
  std::uint64_t idle_us = 60000000;  // a sequence ends when no step has come for so long; 0: never
};

// A model that makes tokens, one for each step: logits of the next token from those before it.
struct GeneratorSettings {
  // Names of inputs and outputs. Empty `tokens`: the model is no generator.
  std::string tokens;  // input, integers [1, S] or [S]: the tokens of a step
  std::string logits;  // output, f32, whose last row belongs to the last token
  // Inputs that a model may have besides, all of integers; empty: it has not.
  std::string positions;          // like `tokens`: their positions
  std::string mask;               // [1, P] or [P]: ones, for all positions until now
  std::string last;               // one element: the last position
  std::string total;              // one element: how many positions there are
  std::vector<std::int64_t> end;  // tokens that end an answer
  std::int64_t context = 2048;    // positions of prompt and answer
  // The symbolic dimension of all state that has a place for each position, as caches of attention have it. A
  // place depends on the tokens up to its position, and those behind the last one are not read. Empty: the
  // state is not looked into.
  std::string cache_dimension;
  std::uint64_t prefix_bytes = 0;  // of the state that is kept of prompts; 0: none is
  // The file of the tokenizer; empty: prompts and answers are tokens.
  std::string tokenizer;
  std::vector<std::int64_t> begin;  // tokens in front of a prompt that is a text
  // A conversation has the text of its role in front of a message, and the other one behind every message.
  // Empty: the model takes none.
  std::map<std::string, std::string> roles;
  std::string message_end;
};

// Processes of their own for the runs of a model whose executable is not trusted (serve/sandbox).
struct SandboxSettings {
  bool enabled = false;
  // Address space of a process, beside what it has at first: the executable, what is made of it when it is
  // linked, what a run takes, inputs and outputs.
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
  // CPU time that loading takes, and then each run.
  std::uint32_t cpu_seconds = 60;
};

struct ModelDescription {
  std::string name;
  std::string version;
  std::vector<std::string> versions;  // all that are ready
  std::string platform;               // "rewire_rwx" or "rewire_onnx"
  std::vector<TensorDescription> inputs;
  std::vector<TensorDescription> outputs;
  BatchSettings batching;
  SequenceSettings sequence;
  bool generates = false;  // settings have a generator
  bool batchable = false;  // all tensors have the same symbolic first dimension
  std::uint32_t instances = 1;
  std::uint32_t max_queue_size = 0;  // 0: no limit
};

enum class ModelState : std::uint8_t { kLoading, kReady, kUnloading, kUnavailable };
// "LOADING", "READY" and so on.
const char* ModelStateName(ModelState state);

struct ModelIndexEntry {
  std::string name;
  std::string version;  // may be empty if the model has never been loaded
  ModelState state = ModelState::kUnavailable;
  std::string reason;  // why it is not ready
};

struct DurationCount {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
};

struct BatchStatistics {
  std::uint64_t batch_size = 0;
  DurationCount compute_input;
  DurationCount compute_infer;
  DurationCount compute_output;
};

// BatchingStatistics: what a model's rows cost, as last compared to choose a batch.
struct BatchingStatistics {
  std::uint64_t declined = 0;  // runs of one request while others waited, because a batch would take longer
  double alone_row_ns = 0;     // 0: not known
  double batch_row_ns = 0;     // the same, of the batch that was chosen or declined
};

struct SequenceStatistics {
  std::uint64_t active = 0;
  std::uint64_t bytes = 0;      // of their state
  std::uint64_t started = 0;    // since the version was loaded, as the others
  std::uint64_t evicted = 0;    // for the place or the memory
  std::uint64_t timed_out = 0;  // no step came
};

// PrefixStatistics: the state that is kept of prompts.
struct PrefixStatistics {
  std::uint64_t bytes = 0;
  std::uint64_t evicted = 0;        // blocks
  std::uint64_t prompt_tokens = 0;  // of prompts that were looked up
  std::uint64_t reused_tokens = 0;  // of them: found
};

// Since the version was loaded.
struct ModelStatistics {
  std::string name;
  std::string version;
  std::uint64_t last_inference_ms = 0;  // since the epoch of Unix
  std::uint64_t inference_count = 0;    // rows of batches
  std::uint64_t execution_count = 0;    // runs
  DurationCount success;                // from Submit to Finish
  DurationCount fail;
  DurationCount queue;
  DurationCount compute_input;  // gathering
  DurationCount compute_infer;
  DurationCount compute_output;  // scattering
  DurationCount cancel;
  std::uint64_t rejected = 0;  // of them: the queue was full
  std::uint64_t waiting = 0;   // now in the queue
  std::vector<BatchStatistics> batches;
  BatchingStatistics batching;
  SequenceStatistics sequences;
  PrefixStatistics prefixes;
};

}  // namespace rewire::serve
