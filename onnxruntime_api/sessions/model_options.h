// SPDX-License-Identifier: Apache-2.0
//
// The options of a session, as options of the compiler and of linking.
#pragma once

#include <set>
#include <string>

#include "rewire/compiler/compiler.h"
#include "rewire/onnxruntime_api/sessions/model_text.h"
#include "rewire/onnxruntime_api/sessions/session_limits.h"
#include "rewire/onnxruntime_api/sessions/session_options.h"
#include "rewire/vm/program.h"

namespace rewire::onnxruntime_api {

// The config entry that names the folder of compiled models.
inline constexpr char kCacheEntry[] = "session.rewire_cache";

// The session's own logger, or that of the environment where the options leave it.
Logger LoggerOf(const OrtEnv& env, const OrtSessionOptions& options);

// While this lives, messages of linking on this thread go to the logger.
class LinkingLogger {
 public:
  explicit LinkingLogger(const Logger& logger);
  ~LinkingLogger();
  LinkingLogger(const LinkingLogger&) = delete;
  LinkingLogger& operator=(const LinkingLogger&) = delete;

 private:
  const Logger* before_;
};

// The host's allocator that the session asks for, by session.use_env_allocators. Null: it asks for none, or
// the host has registered none of its own.
OrtAllocator* AllocatorFor(const OrtEnv& env, const OrtSessionOptions& options);

// `overridden` are initializers that runs give.
Result<CompileOptions> CompileOptionsFor(const ModelText& text, const OrtSessionOptions& options,
                                         const SessionLimits& limits,
                                         const std::set<std::string>& overridden);
LinkOptions LinkOptionsFor(const OrtEnv& env, const OrtSessionOptions& options, const SessionLimits& limits);

}  // namespace rewire::onnxruntime_api
