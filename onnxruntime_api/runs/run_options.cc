// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/runs/run_options.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {

RunUnder::RunUnder(const OrtRunOptions* options, VirtualMachine* vm) : options_(options), vm_(vm) {
  if (options_ == nullptr) return;
  const std::lock_guard lock(options_->mutex);
  options_->running.push_back(vm_);
}

RunUnder::~RunUnder() {
  if (options_ == nullptr) return;
  const std::lock_guard lock(options_->mutex);
  options_->running.erase(std::find(options_->running.begin(), options_->running.end(), vm_));
}

OrtStatus* CreateRunOptions(OrtRunOptions** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = new OrtRunOptions;
    return nullptr;
  });
}
void ReleaseRunOptions(OrtRunOptions* options) noexcept { delete options; }
OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options, int level) noexcept {
  options->log_verbosity = level;
  return nullptr;
}
OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int level) noexcept {
  options->log_severity = level;
  return nullptr;
}
OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* tag) noexcept {
  return Guard([&]() -> OrtStatus* {
    options->tag = tag == nullptr ? "" : tag;
    return nullptr;
  });
}
OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options, int* out) noexcept {
  *out = options->log_verbosity;
  return nullptr;
}
OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options, int* out) noexcept {
  *out = options->log_severity;
  return nullptr;
}
OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** out) noexcept {
  *out = options->tag.c_str();
  return nullptr;
}

// A VM that has been taken for a run but has not begun it does not notice Cancel, which only ends a run that
// goes on. So this asks until no run that began before is left. Each ends at its next instruction.
OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) noexcept {
  options->terminate.store(true);
  return Guard([&]() -> OrtStatus* {
    while (true) {
      {
        const std::lock_guard lock(options->mutex);
        if (options->running.empty()) return nullptr;
        for (VirtualMachine* const vm : options->running) vm->Cancel();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
}
OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) noexcept {
  options->terminate.store(false);
  return nullptr;
}
OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* key, const char* value) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (*key == '\0') return InvalidArgument("Config key is empty or longer than maximum length 1024");
    options->config[key] = value;
    return nullptr;
  });
}
const char* GetRunConfigEntry(const OrtRunOptions* options, const char* key) noexcept {
  const char* found = nullptr;
  Quietly([&] {
    const auto at = options->config.find(key);
    if (at != options->config.end()) found = at->second.c_str();
  });
  return found;
}
OrtStatus* RunOptionsEnableProfiling(OrtRunOptions* options, const char* prefix) noexcept {
  return Guard([&]() -> OrtStatus* {
    options->profile_prefix = prefix;
    return nullptr;
  });
}
OrtStatus* RunOptionsDisableProfiling(OrtRunOptions* options) noexcept {
  options->profile_prefix.clear();
  return nullptr;
}

}  // namespace rewire::onnxruntime_api
