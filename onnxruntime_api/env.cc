// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/env.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

// Never destroyed, see env.h.
struct Shared {
  std::mutex mutex;
  OrtEnv env;
  std::size_t users = 0;
  OrtAllocator* registered = nullptr;
  std::map<int, std::weak_ptr<ThreadPool>> pools;
};
Shared& TheShared() {
  static Shared* const shared = new Shared;
  return *shared;
}

OrtStatus* Acquire(const Logger& logger, int threads, OrtEnv** out) {
  return Guard([&]() -> OrtStatus* {
    Shared& shared = TheShared();
    const std::lock_guard lock(shared.mutex);
    // As with ONNX Runtime, a second environment is the first one, with its logger and threads.
    if (shared.users == 0) {
      shared.env.logger = logger;
      shared.env.threads = threads;
    }
    ++shared.users;
    *out = &shared.env;
    return nullptr;
  });
}

}  // namespace

const OrtEnv* CurrentEnv() {
  Shared& shared = TheShared();
  const std::lock_guard lock(shared.mutex);
  return shared.users == 0 ? nullptr : &shared.env;
}

void Logger::Write(OrtLoggingLevel level, const char* location, const std::string& message) const {
  if (level < severity) return;
  if (function != nullptr) {
    function(parameter, level, "rewire", log_id.c_str(), location, message.c_str());
    return;
  }
  static const char kLetters[] = "VIWEF";
  std::fprintf(stderr, "[%c:rewire:%s] %s\n", kLetters[level], log_id.c_str(), message.c_str());
}

OrtStatus* CreateEnv(OrtLoggingLevel severity, const char* log_id, OrtEnv** out) noexcept {
  return CreateEnvWithCustomLogger(nullptr, nullptr, severity, log_id, out);
}
OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction function, void* parameter, OrtLoggingLevel severity,
                                     const char* log_id, OrtEnv** out) noexcept {
  return Guard([&] {
    return Acquire({function, parameter, severity, log_id == nullptr ? "" : log_id}, 0, out);
  });
}
OrtStatus* CreateEnvWithGlobalThreadPools(OrtLoggingLevel severity, const char* log_id,
                                          const OrtThreadingOptions* threading, OrtEnv** out) noexcept {
  return CreateEnvWithCustomLoggerAndGlobalThreadPools(nullptr, nullptr, severity, log_id, threading, out);
}
OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(OrtLoggingFunction function, void* parameter,
                                                         OrtLoggingLevel severity, const char* log_id,
                                                         const OrtThreadingOptions* threading,
                                                         OrtEnv** out) noexcept {
  return Guard([&] {
    return Acquire({function, parameter, severity, log_id == nullptr ? "" : log_id},
                   threading == nullptr ? 0 : threading->threads, out);
  });
}
OrtStatus* CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) noexcept {
  return CreateEnvWithCustomLoggerAndGlobalThreadPools(
      options->custom_logging_function, options->custom_logging_param,
      static_cast<OrtLoggingLevel>(options->logging_severity_level), options->log_id,
      options->threading_options, out);
}
void ReleaseEnv(OrtEnv* env) noexcept {
  if (env == nullptr) return;
  Shared& shared = TheShared();
  const std::lock_guard lock(shared.mutex);
  if (shared.users > 0) --shared.users;
  if (shared.users == 0) shared.registered = nullptr;
}
OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv* env, OrtLoggingLevel severity) noexcept {
  env->logger.severity = severity;
  return nullptr;
}

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) noexcept {
  *out = new (std::nothrow) OrtThreadingOptions;
  return *out == nullptr ? OutOfMemory() : nullptr;
}
void ReleaseThreadingOptions(OrtThreadingOptions* options) noexcept { delete options; }
OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* options, int threads) noexcept {
  options->threads = threads;
  return nullptr;
}

// Accepted without effect: Rewire has one pool, whose threads sleep when there is nothing to do.
OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions*, int) noexcept { return nullptr; }
OrtStatus* SetGlobalSpinControl(OrtThreadingOptions*, int) noexcept { return nullptr; }
OrtStatus* SetGlobalDenormalAsZero(OrtThreadingOptions*) noexcept { return nullptr; }
OrtStatus* SetGlobalIntraOpThreadAffinity(OrtThreadingOptions*, const char*) noexcept { return nullptr; }
// Nothing is ever sent anywhere.
OrtStatus* EnableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* DisableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* SetLanguageProjection(const OrtEnv*, OrtLanguageProjection) noexcept { return nullptr; }

const char* GetBuildInfoString() noexcept { return "ORT Build Info: Rewire " REWIRE_VERSION; }

}  // namespace rewire::onnxruntime_api

std::shared_ptr<rewire::ThreadPool> OrtEnv::Pool(int asked) const {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int count = asked > 0 ? asked : cores > 0 ? cores : 1;
  if (count == 1) return nullptr;
  auto& shared = rewire::onnxruntime_api::TheShared();
  const std::lock_guard lock(shared.mutex);
  std::weak_ptr<rewire::ThreadPool>& kept = shared.pools[count];
  std::shared_ptr<rewire::ThreadPool> pool = kept.lock();
  if (pool == nullptr) kept = pool = rewire::ThreadPool::Make(count);
  return pool;
}

OrtAllocator* OrtEnv::Registered() const {
  auto& shared = rewire::onnxruntime_api::TheShared();
  const std::lock_guard lock(shared.mutex);
  return shared.registered;
}
void OrtEnv::Register(OrtAllocator* allocator) {
  auto& shared = rewire::onnxruntime_api::TheShared();
  const std::lock_guard lock(shared.mutex);
  shared.registered = allocator;
}
bool OrtEnv::Unregister() {
  auto& shared = rewire::onnxruntime_api::TheShared();
  const std::lock_guard lock(shared.mutex);
  return std::exchange(shared.registered, nullptr) != nullptr;
}
