// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/session_options.h"

#include <cstring>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/key_value_pairs.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

constexpr std::size_t kMostKeyBytes = 1024;
constexpr std::size_t kMostValueBytes = 8192;

template <typename Change>
OrtStatus* Set(Change&& change) noexcept {
  return Guard([&]() -> OrtStatus* {
    change();
    return nullptr;
  });
}

}  // namespace

OrtStatus* CreateSessionOptions(OrtSessionOptions** out) noexcept {
  return Set([&] { *out = new OrtSessionOptions; });
}
OrtStatus* CloneSessionOptions(const OrtSessionOptions* options, OrtSessionOptions** out) noexcept {
  return Set([&] { *out = new OrtSessionOptions(*options); });
}
void ReleaseSessionOptions(OrtSessionOptions* options) noexcept { delete options; }

OrtStatus* SetOptimizedModelFilePath(OrtSessionOptions* options, const char* path) noexcept {
  return Set([&] { options->optimized_path = path; });
}
OrtStatus* EnableProfiling(OrtSessionOptions* options, const char* prefix) noexcept {
  return Set([&] { options->profile_prefix = prefix; });
}
OrtStatus* DisableProfiling(OrtSessionOptions* options) noexcept {
  return Set([&] { options->profile_prefix.clear(); });
}
OrtStatus* SetSessionExecutionMode(OrtSessionOptions* options, ExecutionMode mode) noexcept {
  if (mode != ORT_SEQUENTIAL && mode != ORT_PARALLEL)
    return Guard([] { return InvalidArgument("execution_mode is not valid"); });
  options->mode = mode;
  return nullptr;
}
OrtStatus* GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) noexcept {
  *out = options->mode;
  return nullptr;
}
OrtStatus* SetSessionLogId(OrtSessionOptions* options, const char* log_id) noexcept {
  return Set([&] { options->log_id = log_id; });
}
OrtStatus* SetSessionLogSeverityLevel(OrtSessionOptions* options, int level) noexcept {
  options->log_severity = level;
  return nullptr;
}
OrtStatus* SetUserLoggingFunction(OrtSessionOptions* options, OrtLoggingFunction function,
                                  void* parameter) noexcept {
  options->log_function = function;
  options->log_parameter = parameter;
  return nullptr;
}
OrtStatus* SetSessionGraphOptimizationLevel(OrtSessionOptions* options,
                                            GraphOptimizationLevel level) noexcept {
  switch (static_cast<int>(level)) {
    case ORT_DISABLE_ALL:
    case ORT_ENABLE_BASIC:
    case ORT_ENABLE_EXTENDED:
    case ORT_ENABLE_LAYOUT:
    case ORT_ENABLE_ALL:
      options->level = level;
      return nullptr;
    default:
      return Guard([] { return InvalidArgument("graph_optimization_level is not valid"); });
  }
}
OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int threads) noexcept {
  options->threads = threads;
  return nullptr;
}
OrtStatus* DisablePerSessionThreads(OrtSessionOptions* options) noexcept {
  options->own_threads = false;
  return nullptr;
}
OrtStatus* SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) noexcept {
  options->cancelled->store(cancel);
  return nullptr;
}
OrtStatus* EnableMemPattern(OrtSessionOptions* options) noexcept {
  options->memory_pattern = true;
  return nullptr;
}
OrtStatus* DisableMemPattern(OrtSessionOptions* options) noexcept {
  options->memory_pattern = false;
  return nullptr;
}
OrtStatus* GetMemPatternEnabled(const OrtSessionOptions* options, int* out) noexcept {
  *out = options->memory_pattern ? 1 : 0;
  return nullptr;
}

// Accepted without effect. Arenas and their layout are the compiler's work, operators run at once where that
// is faster, and results never depend on threads.
OrtStatus* EnableCpuMemArena(OrtSessionOptions*) noexcept { return nullptr; }
OrtStatus* DisableCpuMemArena(OrtSessionOptions*) noexcept { return nullptr; }
OrtStatus* SetInterOpNumThreads(OrtSessionOptions*, int) noexcept { return nullptr; }
OrtStatus* SetSessionLogVerbosityLevel(OrtSessionOptions*, int) noexcept { return nullptr; }
OrtStatus* SetDeterministicCompute(OrtSessionOptions*, bool) noexcept { return nullptr; }

OrtStatus* AddFreeDimensionOverride(OrtSessionOptions* options, const char* denotation,
                                    std::int64_t size) noexcept {
  return Set([&] { options->sizes_by_denotation[denotation] = size; });
}
OrtStatus* AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* name,
                                          std::int64_t size) noexcept {
  return Set([&] { options->sizes_by_name[name] = size; });
}

OrtStatus* AddInitializer(OrtSessionOptions* options, const char* name, const OrtValue* value) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (value == nullptr || value->body->kind != ONNX_TYPE_TENSOR)
      return InvalidArgument("Received OrtValue is not a tensor. Only tensors are supported.");
    if (value->body->owner != nullptr || value->body->is_string())
      return InvalidArgument("Buffer containing the initializer must be owned by the user.");
    // The host's memory is used in place, and the host keeps the value as long as sessions use it.
    if (!options->initializers.values.emplace(name, value->body).second)
      return InvalidArgument("An OrtValue for this name has already been added: " + std::string(name));
    return nullptr;
  });
}

OrtStatus* AddExternalInitializers(OrtSessionOptions* options, const char* const* names,
                                   const OrtValue* const* values, std::size_t count) noexcept {
  return Guard([&]() -> OrtStatus* {
    for (std::size_t i = 0; i < count; ++i) {
      if (names[i] == nullptr || *names[i] == '\0') return InvalidArgument("Received empty name.");
      if (values[i] == nullptr || values[i]->body->kind != ONNX_TYPE_TENSOR || values[i]->body->is_string())
        return InvalidArgument("Received an initializer that is no tensor of numbers.");
      if (!options->initializers.external.emplace(names[i], values[i]->body).second)
        return InvalidArgument("An OrtValue for this name has already been added: " + std::string(names[i]));
    }
    return nullptr;
  });
}
OrtStatus* AddExternalInitializersFromFilesInMemory(OrtSessionOptions* options, const char* const* names,
                                                    char* const* data, const std::size_t* sizes,
                                                    std::size_t count) noexcept {
  return Guard([&]() -> OrtStatus* {
    for (std::size_t i = 0; i < count; ++i) {
      if (names[i] == nullptr || *names[i] == '\0') return InvalidArgument("Received empty file name.");
      const SharedBytes file = {{reinterpret_cast<const std::byte*>(data[i]), sizes[i]}, nullptr};
      if (!options->initializers.files.emplace(names[i], file).second)
        return InvalidArgument("A file of this name has already been added: " + std::string(names[i]));
    }
    return nullptr;
  });
}

OrtStatus* AddSessionConfigEntry(OrtSessionOptions* options, const char* key, const char* value) noexcept {
  return Guard([&]() -> OrtStatus* {
    const std::size_t size = std::strlen(key);
    if (size == 0 || size > kMostKeyBytes)
      return InvalidArgument("Config key is empty or longer than maximum length " +
                             std::to_string(kMostKeyBytes));
    if (std::strlen(value) > kMostValueBytes)
      return InvalidArgument("Config value is longer than maximum length " + std::to_string(kMostValueBytes));
    options->config[key] = value;
    return nullptr;
  });
}
OrtStatus* HasSessionConfigEntry(const OrtSessionOptions* options, const char* key, int* out) noexcept {
  return Set([&] { *out = options->config.count(key) != 0 ? 1 : 0; });
}
OrtStatus* GetSessionConfigEntry(const OrtSessionOptions* options, const char* key, char* value,
                                 std::size_t* size) noexcept {
  return Guard([&]() -> OrtStatus* {
    const auto found = options->config.find(key);
    if (found == options->config.end())
      return MakeStatus(ORT_FAIL, "Session config entry '" + std::string(key) + "' was not found.");
    const std::size_t needed = found->second.size() + 1;
    const std::size_t given = *size;
    *size = needed;
    if (value == nullptr) return nullptr;
    if (given < needed) return InvalidArgument("Output buffer is not large enough for session config entry");
    std::memcpy(value, found->second.c_str(), needed);
    return nullptr;
  });
}
OrtStatus* GetSessionOptionsConfigEntries(const OrtSessionOptions* options, OrtKeyValuePairs** out) noexcept {
  return NewPairs(options->config, out);
}

}  // namespace rewire::onnxruntime_api
