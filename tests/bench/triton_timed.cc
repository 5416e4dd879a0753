// SPDX-License-Identifier: Apache-2.0
//
// A backend for Triton that hands everything to the backend in the file that REWIRE_TIMED_BACKEND names, and
// times its executions. When Triton ends the backend, it logs their median, without what waits in Triton.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "rewire/integrations/triton/backend_api.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Clock = std::chrono::steady_clock;

struct Times {
  std::mutex mutex;
  std::vector<std::uint32_t> ns;
};
Times times;

void* Library() {
  static void* const library = [] {
    const char* const path = std::getenv("REWIRE_TIMED_BACKEND");
    void* const opened = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr)
      std::fprintf(stderr, "REWIRE_TIMED_BACKEND: %s\n", path == nullptr ? "not set" : dlerror());
    return opened;
  }();
  return library;
}

// The result of a function of the other backend; null if it has none of that name.
template <typename... Arguments>
TRITONSERVER_Error* Hand(const char* name, Arguments... arguments) {
  using Function = TRITONSERVER_Error* (*)(Arguments...);
  auto* const function = Library() == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(Library(), name));
  return function == nullptr ? nullptr : function(arguments...);
}

}  // namespace

EXPORT TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  if (Library() == nullptr) return TRITONSERVER_ErrorNew(kTritonInvalidArgument, "REWIRE_TIMED_BACKEND");
  return Hand("TRITONBACKEND_Initialize", backend);
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  if (!times.ns.empty()) {
    const auto middle = times.ns.begin() + static_cast<std::ptrdiff_t>(times.ns.size() / 2);
    std::nth_element(times.ns.begin(), middle, times.ns.end());
    std::printf("%zu executions, median %u ns\n", times.ns.size(), *middle);
    std::fflush(stdout);
  }
  return Hand("TRITONBACKEND_Finalize", backend);
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return Hand("TRITONBACKEND_ModelInitialize", model);
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return Hand("TRITONBACKEND_ModelFinalize", model);
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return Hand("TRITONBACKEND_ModelInstanceInitialize", instance);
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return Hand("TRITONBACKEND_ModelInstanceFinalize", instance);
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                              TRITONBACKEND_Request** requests,
                                                              const std::uint32_t count) {
  using Function =
      TRITONSERVER_Error* (*)(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request**, std::uint32_t);
  static auto* const execute =
      reinterpret_cast<Function>(dlsym(Library(), "TRITONBACKEND_ModelInstanceExecute"));
  const Clock::time_point start = Clock::now();
  TRITONSERVER_Error* const error = execute(instance, requests, count);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  const std::lock_guard<std::mutex> lock(times.mutex);
  times.ns.push_back(static_cast<std::uint32_t>(ns));
  return error;
}
