// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a model (config.pbtxt) and of the backend, as Triton gives them in JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/models/settings.h"

namespace rewire::triton {

// Settings on the server's command line: --backend-config=rewire,KEY=VALUE.
struct BackendSettings {
  std::vector<std::string> kernels;         // libraries of kernels, by `kernels`, separated by colons
  std::int64_t default_max_batch_size = 4;  // Triton's own setting
  std::vector<std::string> unknown;         // keys that the backend does not have
};

// A later version of Triton may give all backends more keys, so an unknown one is no error.
Result<BackendSettings> ReadBackendSettings(std::string_view json);

struct ModelConfig {
  std::string file;        // `default_model_filename`; empty: model.rwx or model.onnx
  bool decoupled = false;  // a request may have several responses
  bool sequences = false;  // Triton brings steps of a sequence in order, and each request is one
  // Requests may ask for so many steps. An output of state ends them with this integer.
  std::uint64_t most_steps = 4096;
  std::map<std::string, std::int64_t> stops;
  serve::ModelSettings settings;
};

// Reads max_batch_size, and the `parameters` that README.md lists. Paths in them begin at `folder`. Errors:
// kInvalidArgument for a parameter that does not exist, with similar ones, and for a value of another kind;
// kUnsupported for `sequence_batching.state`, which is Triton's own form of it.
Result<ModelConfig> ReadModelConfig(std::string_view json, const std::string& folder);

// The configuration with what it leaves out: inputs, outputs, and if it says nothing of them, batches; for a
// model with state, sequences, unless it is decoupled.
Result<std::string> CompleteConfig(std::string_view json, const serve::ModelVersion& model,
                                   std::int64_t default_max_batch_size);

// Compares a configuration with a model. Errors: kInvalidArgument for names, types and shapes that the model
// does not have, naming input or output, expected and given. A model with state whose requests are neither
// sequences nor decoupled gets it, too. So does an output that is to end steps and is no integer of the
// state.
Status CheckConfig(std::string_view json, const ModelConfig& read, const serve::ModelVersion& model);

}  // namespace rewire::triton
