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

// Runs requests on a VM of its own, one thread at a time.
class TritonInstance {
 public:
  TritonInstance(TritonModel* model, TRITONBACKEND_ModelInstance* handle)
      : model_(model), handle_(handle), instance_(model->version(), model->placing()) {
    instance_.Prepare();
  }

  // Answers and releases all requests. Those that fit together run as one batch.
  void Execute(TRITONBACKEND_Request** requests, std::uint32_t count);

 private:
  // Reads and checks a request, so that it can run.
  Status Admit(TritonRequest* request, TRITONBACKEND_Request* handle);
  // The rows of a run of this request alone, as statistics count them.
  std::int64_t RowsOf(const TritonRequest& request) const;
  // A run of one request, and of all members.
  serve::RunTimes RunOne(TritonRequest* request, std::int64_t rows = 1);
  void RunBatch(std::int64_t rows);
  // Several steps of one request, with a response each. Errors: kInvalidArgument, kUnsupported.
  Status BeginSteps(TritonRequest* request);
  void RunSteps(TritonRequest* request);
  Status NextStep(TritonRequest* request);
  // Whether an output of the state says that it was the last step.
  bool IsStopped(const serve::Sequence& sequence) const;
  // Answers and releases a request that has its status.
  void End(TritonRequest* request, const serve::RunTimes& times);
  void ReportRun(std::int64_t rows, const serve::RunTimes& times);

  TritonModel* const model_;
  TRITONBACKEND_ModelInstance* const handle_;
  serve::Instance instance_;
  std::vector<std::unique_ptr<TritonRequest>> requests_;  // used again
  std::vector<serve::Request*> waiting_;
  std::vector<serve::Request*> members_;
  std::vector<std::int64_t> sizes_;
  std::uint64_t steps_ = 0;  // that the last request read asks for; 0: it does not say
};

}  // namespace rewire::triton
