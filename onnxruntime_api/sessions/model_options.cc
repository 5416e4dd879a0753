// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/model_options.h"

#include <chrono>
#include <cstdlib>

#include "rewire/onnxruntime_api/allocator.h"
#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/vm_memory.h"

namespace rewire::onnxruntime_api {
namespace {

// The logger of the session that this thread links a model for.
thread_local const Logger* linking_logger = nullptr;

// A program outlives the session that it is made for, so later messages go to the environment.
void WriteLinkMessage(void*, const char* message, std::size_t size) {
  const OrtEnv* const env = CurrentEnv();
  const Logger* const logger = linking_logger != nullptr || env == nullptr ? linking_logger : &env->logger;
  if (logger == nullptr) return;
  Quietly([&] { logger->Write(ORT_LOGGING_LEVEL_INFO, "link", std::string(message, size)); });
}

}  // namespace

LinkingLogger::LinkingLogger(const Logger& logger) : before_(linking_logger) { linking_logger = &logger; }
LinkingLogger::~LinkingLogger() { linking_logger = before_; }

Logger LoggerOf(const OrtEnv& env, const OrtSessionOptions& options) {
  Logger logger = env.logger;
  if (options.log_function != nullptr) {
    logger.function = options.log_function;
    logger.parameter = options.log_parameter;
  }
  if (options.log_severity >= 0) logger.severity = static_cast<OrtLoggingLevel>(options.log_severity);
  if (!options.log_id.empty()) logger.log_id = options.log_id;
  return logger;
}

OrtAllocator* AllocatorFor(const OrtEnv& env, const OrtSessionOptions& options) {
  const auto entry = options.config.find("session.use_env_allocators");
  if (entry == options.config.end() || entry->second != "1") return nullptr;
  OrtAllocator* const registered = env.Registered();
  return registered == DefaultOrtAllocator() ? nullptr : registered;
}

Result<CompileOptions> CompileOptionsFor(const ModelText& text, const OrtSessionOptions& options,
                                         const SessionLimits& limits,
                                         const std::set<std::string>& overridden) {
  CompileOptions compile;
  Result<std::vector<OperatorSchema>> operators = SchemasOf(options.custom_ops);
  if (!operators) return Forward(operators);
  compile.operators = *std::move(operators);
  compile.bound_memory = false;
  compile.compress = false;  // opening is to be fast, and few files are written
  const auto cache = options.config.find(kCacheEntry);
  const char* const environment = std::getenv("REWIRE_MODEL_CACHE");
  if (cache != options.config.end()) {
    compile.cache = cache->second;
  } else if (environment != nullptr) {
    compile.cache = environment;
  }
  // Names that the model does not have are no error here, but are one of the compiler's.
  for (const auto& [name, size] : options.sizes_by_name) {
    if (text.dims.count(name) != 0) compile.dims[name] = size;
  }
  for (const auto& [denotation, size] : options.sizes_by_denotation) {
    const auto names = text.denotations.find(denotation);
    if (names == text.denotations.end()) continue;
    for (const std::string& name : names->second) compile.dims.emplace(name, size);
  }
  if (Status given = GiveInitializers(options.initializers, text, overridden, &compile); !given)
    return Forward(given);
  if (limits.load_time.count() != 0) {
    compile.limits.fold_time = limits.load_time;
    compile.limits.fold_node_time = limits.load_time;
  }
  return compile;
}

LinkOptions LinkOptionsFor(const OrtEnv& env, const OrtSessionOptions& options, const SessionLimits& limits) {
  LinkOptions link;
  link.init_sharing = ShareInitResults();
  link.threads = env.Pool(options.own_threads ? options.threads : env.threads);
  OrtAllocator* const allocator = AllocatorFor(env, options);
  link.allocator = allocator == nullptr ? KeepingAllocator() : HostsAllocator(allocator);
  link.log.write = WriteLinkMessage;
  link.ignore_extra_parameters = true;
  link.init_limits = limits.run;
  if (limits.load_time.count() != 0)
    link.limits.deadline = std::chrono::steady_clock::now() + limits.load_time;
  if (limits.zero_memory) link.storage_fill = StorageFill::kZero;
  AddKernels(options.custom_ops, options.config, &link.kernels);
  return link;
}

}  // namespace rewire::onnxruntime_api
