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
#include "rewire/serve/run/instance.h"
#include "rewire/serve/run/sequences.h"

namespace rewire::triton {

// What all models of the server share.
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
  const serve::BatchSettings& batching() const { return batching_; }
  CancelWatch* watch() { return &backend_->watch; }

  // A request of a sequence becomes its step, and Leave ends it. Errors: those of Sequences::Join; kBusy if
  // another step of the sequence runs.
  Status Join(TritonRequest* request);
  void Leave(TritonRequest* request);

 private:
  TritonModel(TritonBackend* backend, std::shared_ptr<const serve::ModelVersion> version)
      : backend_(backend), version_(std::move(version)), sequences_(*version_) {}

  TritonBackend* const backend_;
  const std::shared_ptr<const serve::ModelVersion> version_;
  serve::BatchSettings batching_;
  std::mutex mutex_;
  serve::Sequences sequences_;
};

// Runs requests on a VM of its own, one thread at a time.
class TritonInstance {
 public:
  TritonInstance(TritonModel* model, TRITONBACKEND_ModelInstance* handle)
      : model_(model), handle_(handle), instance_(model->version()) {
    instance_.Prepare();
  }

  // Answers and releases all requests. Those that fit together run as one batch.
  void Execute(TRITONBACKEND_Request** requests, std::uint32_t count);

 private:
  // Reads and checks a request, so that it can run.
  Status Admit(TritonRequest* request, TRITONBACKEND_Request* handle);
  // Runs requests together and answers them.
  void RunTogether(const std::vector<serve::Request*>& members, std::int64_t rows);
  // Answers one that is not to run.
  void Refuse(TritonRequest* request);
  void Report(TritonRequest* request, const serve::RunTimes& times);

  TritonModel* const model_;
  TRITONBACKEND_ModelInstance* const handle_;
  serve::Instance instance_;
  std::vector<std::unique_ptr<TritonRequest>> requests_;  // used again
  std::vector<serve::Request*> waiting_;
  std::vector<serve::Request*> members_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace rewire::triton
