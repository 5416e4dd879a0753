// SPDX-License-Identifier: Apache-2.0
//
// Runs requests on a VM of its own. What has come together runs together, if the shapes let it: requests, and
// steps of different sequences.
//
// A request for several steps has a response for each. Models that are decoupled have such requests, and then
// a thread of the instance runs them, so that new requests join between two steps (continuous batching).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/integrations/triton/backend_api.h"
#include "rewire/integrations/triton/triton_model.h"
#include "rewire/integrations/triton/triton_request.h"
#include "rewire/serve/run/batch_rule.h"
#include "rewire/serve/run/instance.h"

namespace rewire::triton {

class TritonInstance {
 public:
  TritonInstance(TritonModel* model, TRITONBACKEND_ModelInstance* handle);
  // Returns when all requests are answered.
  ~TritonInstance();
  TritonInstance(const TritonInstance&) = delete;
  TritonInstance& operator=(const TritonInstance&) = delete;

  // Answers and releases all requests, those of a decoupled model with state later.
  void Execute(Span<TRITONBACKEND_Request* const> requests);

 private:
  // Takes requests in, and answers those that cannot run.
  void Take(Span<TRITONBACKEND_Request* const> requests);
  // Reads and checks a request, so that it can run.
  Status Admit(TritonRequest* request, TRITONBACKEND_Request* handle);
  // Errors: kInvalidArgument, kUnsupported.
  Status BeginSteps(TritonRequest* request);
  // One step of each request.
  void RunRound();
  // Members of the next batch, as positions among `waiting_`.
  serve::Batch NextBatch() const;
  // The rows of a run of this request alone, as statistics count them.
  std::int64_t RowsOf(const TritonRequest& request) const;
  void RunBatch(Span<serve::Request* const> members, std::int64_t rows);
  // Behind a run: the request's next step, or its end.
  void GoOn(TritonRequest* request, const serve::RunTimes& times);
  Status NextStep(TritonRequest* request);
  // Whether an output of the state says that it was the last step.
  bool IsStopped(const serve::Sequence& sequence);
  // Answers and releases a request that has its status.
  void End(TritonRequest* request, const serve::RunTimes& times);
  // The thread of a decoupled model.
  void RunSteps();

  TritonModel* const model_;
  TRITONBACKEND_ModelInstance* const handle_;
  serve::Instance instance_;
  std::vector<std::unique_ptr<TritonRequest>> unused_;   // requests to be used again
  std::vector<std::unique_ptr<TritonRequest>> running_;  // in the order in which they came
  std::vector<serve::Request*> waiting_;                 // for their step in this round
  std::vector<serve::Request*> members_;
  std::vector<std::int64_t> sizes_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<TRITONBACKEND_Request*> arrived_;
  bool ending_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace rewire::triton
