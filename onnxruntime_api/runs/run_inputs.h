// SPDX-License-Identifier: Apache-2.0
//
// A host's inputs as those of the VM.
#pragma once

#include <vector>

#include "rewire/onnxruntime_api/runs/run.h"

namespace rewire::onnxruntime_api {

// Fills in the function's inputs, in order. Statuses have ONNX Runtime's codes and texts: hosts show them.
OrtStatus* BindInputs(const Ports& ports, const std::vector<NamedInput>& inputs, std::vector<Value>* values);

}  // namespace rewire::onnxruntime_api
