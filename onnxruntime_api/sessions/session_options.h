// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rewire/onnxruntime_api/custom_ops/custom_op.h"
#include "rewire/onnxruntime_api/env.h"
#include "rewire/onnxruntime_api/sessions/initializers.h"
#include "rewire/onnxruntime_api/values/value.h"

// How a session is made. Sessions copy what they need, so that a host may release its options at once.
struct OrtSessionOptions {
  // Both in one object, which clones share: a host may cancel from another thread while a model compiles.
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  std::map<std::string, std::string> config;
  std::map<std::string, std::int64_t> sizes_by_name;
  std::map<std::string, std::int64_t> sizes_by_denotation;
  rewire::onnxruntime_api::GivenInitializers initializers;
  rewire::onnxruntime_api::CustomOps custom_ops;
  std::string optimized_path;
  std::string profile_prefix;  // empty: no profile
  std::string log_id;
  int log_severity = -1;  // the environment's
  OrtLoggingFunction log_function = nullptr;
  void* log_parameter = nullptr;
  GraphOptimizationLevel level = ORT_ENABLE_ALL;
  ExecutionMode mode = ORT_SEQUENTIAL;
  int threads = 0;  // 0: all cores
  bool own_threads = true;
  bool memory_pattern = true;
};
