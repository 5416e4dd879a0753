// SPDX-License-Identifier: Apache-2.0
//
// Errors and messages between Rewire and Triton.
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/integrations/triton/backend_api.h"
#include "rewire/vm/program.h"

namespace rewire::triton {

// Null for an OK Status. Triton, or the function that gets it, deletes it.
TRITONSERVER_Error* ErrorOf(const Status& status);

// Takes an error that a function of Triton's has returned. The Status is OK for null.
Status Taken(TRITONSERVER_Error* error);

// Takes an error that nobody can be told of, and logs it.
void LogError(TRITONSERVER_Error* error);
void LogWarning(const std::string& text);
// Messages of programs, in Triton's log.
LogSink TritonLog();

}  // namespace rewire::triton
