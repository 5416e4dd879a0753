// SPDX-License-Identifier: Apache-2.0
//
// The environment: one for the process, counted, and never destroyed, because hosts release theirs in
// destructors of static objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "rewire/onnxruntime_api/api.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::onnxruntime_api {

// Messages go to the host's function, or to stderr.
struct Logger {
  OrtLoggingFunction function = nullptr;
  void* parameter = nullptr;
  OrtLoggingLevel severity = ORT_LOGGING_LEVEL_WARNING;
  std::string log_id;

  void Write(OrtLoggingLevel level, const char* location, const std::string& message) const;
};

}  // namespace rewire::onnxruntime_api

struct OrtThreadingOptions {
  int threads = 0;
};

struct OrtEnv {
  rewire::onnxruntime_api::Logger logger;
  int threads = 0;  // of sessions that use the environment's pool; 0: all cores

  // The pool of so many threads that all sessions share which ask for as many. 0: all cores.
  std::shared_ptr<rewire::ThreadPool> Pool(int threads) const;

  // The allocator that sessions may share, the host's or the default one. Null: none is registered.
  // Thread-safe, as the functions below are.
  OrtAllocator* Registered() const;
  void Register(OrtAllocator* allocator);
  // False if there is none.
  bool Unregister();
};

namespace rewire::onnxruntime_api {

// The environment, while a host holds it; null otherwise.
const OrtEnv* CurrentEnv();

}  // namespace rewire::onnxruntime_api
