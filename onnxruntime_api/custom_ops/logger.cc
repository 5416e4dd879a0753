// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/custom_ops/logger.h"

#include "rewire/onnxruntime_api/env.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

struct OrtLogger {};

namespace rewire::onnxruntime_api {

const OrtLogger* LoggerOfEnv() {
  static constexpr OrtLogger kLogger{};
  return &kLogger;
}

OrtStatus* Logger_LogMessage(const OrtLogger*, OrtLoggingLevel level, const char* message, const char* file,
                             int line, const char* function) noexcept {
  Quietly([&] {
    const OrtEnv* const env = CurrentEnv();
    if (env == nullptr || level < env->logger.severity) return;
    const std::string place = std::string(file) + ":" + std::to_string(line) + " " + function;
    env->logger.Write(level, place.c_str(), message);
  });
  return nullptr;
}
OrtStatus* Logger_GetLoggingSeverityLevel(const OrtLogger*, OrtLoggingLevel* out) noexcept {
  const OrtEnv* const env = CurrentEnv();
  *out = env == nullptr ? ORT_LOGGING_LEVEL_WARNING : env->logger.severity;
  return nullptr;
}

}  // namespace rewire::onnxruntime_api
