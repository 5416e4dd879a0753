// SPDX-License-Identifier: Apache-2.0
//
// A model in Triton: one Program, which its instances share, and the state of its sequences.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/integrations/triton/backend_api.h"
#include "rewire/integrations/triton/cancel_watch.h"
#include "rewire/integrations/triton/model_config.h"
#include "rewire/integrations/triton/triton_request.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/sequences.h"

namespace rewire::triton {

// One for all models of the server.
struct TritonBackend {
  BackendSettings settings;
  std::unique_ptr<serve::ModelLoader> loader;
  CancelWatch watch;
};

class TritonModel {
 public:
  // Loads the model of a version's folder. If Triton asks for it, completes the configuration.
  static Result<std::unique_ptr<TritonModel>> Load(TritonBackend* backend, TRITONBACKEND_Model* handle);

  const serve::ModelVersion& version() const { return *version_; }
  const ModelConfig& config() const { return config_; }
  CancelWatch* watch() { return &backend_->watch; }
  std::mutex* placing() { return &placing_; }  // of state, for all instances

  // A request of a sequence becomes its step, and Leave ends it. Errors: those of Sequences::Join; kBusy if
  // another step of the sequence runs.
  Status Join(TritonRequest* request);
  void Leave(TritonRequest* request);

 private:
  TritonModel(TritonBackend* backend, std::unique_ptr<const serve::ModelSettings> settings,
              std::shared_ptr<const serve::ModelVersion> version, ModelConfig config)
      : backend_(backend),
        settings_(std::move(settings)),
        version_(std::move(version)),
        config_(std::move(config)),
        sequences_(*version_) {}

  TritonBackend* const backend_;
  const std::unique_ptr<const serve::ModelSettings> settings_;  // the version refers to them
  const std::shared_ptr<const serve::ModelVersion> version_;
  const ModelConfig config_;
  std::mutex mutex_;
  std::mutex placing_;
  serve::Sequences sequences_;
};

}  // namespace rewire::triton
