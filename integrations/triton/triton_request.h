// SPDX-License-Identifier: Apache-2.0
//
// One request of Triton's and its response, in the form that instances of serve/ run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/integrations/triton/backend_api.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/instance.h"

namespace rewire::triton {

class TritonRequest : public serve::Request {
 public:
  // Reads inputs, wanted outputs and, for a model with state, the step of a sequence. Floats are used where
  // Triton has them, if they are in one part; the request keeps them. The rest is copied, because a client
  // could change integers in its shared memory between a kernel's check and its use. Errors:
  // kInvalidArgument; kUnsupported for memory of a GPU; kCancelled if the client has cancelled it.
  Status Read(const serve::ModelVersion& model, TRITONBACKEND_Request* request);
  // Makes the response, and takes Triton's memory for each output whose shape follows from those of the
  // inputs, so that the model writes it there. `sizes`: of the symbolic dimensions.
  Status MakeResponse(const serve::ModelVersion& model, const std::vector<std::int64_t>& sizes);
  // After a run: copies the results that are not in Triton's memory yet. If that fails, the request does.
  void PlaceResults();
  // Sends the results, or the error, which is the last response in any case.
  void Send(bool is_last);
  // How many steps the request asks for, by its parameter `steps`; nothing if it has none. Errors:
  // kInvalidArgument for a value that is no whole number from 1 on.
  Result<std::optional<std::uint64_t>> Steps() const;
  // Gives Triton the request back.
  void Release();

  TRITONBACKEND_Request* handle() const { return handle_; }

  // The instance's own: how many steps are left, and when the first one ran.
  std::uint64_t steps_left = 0;
  std::optional<serve::RunTimes> first_run;

  void Finish() override {}

 private:
  Status ReadInput(std::uint32_t index);
  Status ReadStep();
  // Makes an output of the response and takes Triton's memory for it.
  Status TakeMemory(const serve::OutputTensor& output, std::byte** data);
  Status TryPlaceResults();

  TRITONBACKEND_Request* handle_ = nullptr;
  TRITONBACKEND_Response* response_ = nullptr;
};

}  // namespace rewire::triton
