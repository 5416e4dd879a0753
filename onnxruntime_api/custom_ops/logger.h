// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/onnxruntime_api/api.h"

namespace rewire::onnxruntime_api {

// The logger that kernels get: it writes to that of the environment, as long as a host holds one.
const OrtLogger* LoggerOfEnv();

}  // namespace rewire::onnxruntime_api
