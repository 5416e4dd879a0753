// SPDX-License-Identifier: Apache-2.0
//
// The methods of inference.GRPCInferenceService, but for the two that infer.
#pragma once

#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/core/service.h"

namespace rewire::serve {

// One row for each method of the service.
struct GrpcMethod {
  enum class Kind { kUnary, kSlow, kInfer, kStreamInfer };
  std::string_view name;  // behind "/inference.GRPCInferenceService/"
  Kind kind;              // kSlow: it is answered on another thread, so that it keeps no client waiting
  // Reads the request and writes the response. Null for those that infer.
  Status (*answer)(Service* service, std::string_view message, std::string* response);
};

// Null if there is no such method. `path` is the whole path of the request.
const GrpcMethod* FindGrpcMethod(std::string_view path);

}  // namespace rewire::serve
