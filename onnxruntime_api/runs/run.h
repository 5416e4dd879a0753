// SPDX-License-Identifier: Apache-2.0
//
// One run of a session.
#pragma once

#include <memory>
#include <vector>

#include "rewire/onnxruntime_api/api.h"
#include "rewire/onnxruntime_api/sessions/model.h"
#include "rewire/onnxruntime_api/values/value.h"

namespace rewire::onnxruntime_api {

struct NamedInput {
  const char* name;
  const OrtValue* value;
};
struct NamedOutput {
  const char* name;
  std::shared_ptr<ValueBody> value;  // the host's, which the run writes; null: the run allocates one
};

// Runs the session's model; on success each output has its value.
OrtStatus* RunModel(const OrtSession& session, const OrtRunOptions* options,
                    const std::vector<NamedInput>& inputs, std::vector<NamedOutput>* outputs);

}  // namespace rewire::onnxruntime_api
