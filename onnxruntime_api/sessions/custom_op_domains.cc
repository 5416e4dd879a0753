// SPDX-License-Identifier: Apache-2.0
//
// The functions by which a host brings custom operators.
#include <dlfcn.h>

#include "rewire/onnxruntime_api/custom_ops/custom_op.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/sessions/session_options.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

using RegisterFunction = OrtStatus* (*)(OrtSessionOptions* options, const OrtApiBase* base);
constexpr char kRegister[] = "RegisterCustomOps";

OrtStatus* CallRegister(void* symbol, OrtSessionOptions* options) {
  return reinterpret_cast<RegisterFunction>(symbol)(options, OrtGetApiBase());
}

OrtStatus* OpenLibrary(const char* path, void** handle) {
  *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*handle != nullptr) return nullptr;
  const char* const why = dlerror();
  return MakeStatus(ORT_FAIL, "Failed to load library " + std::string(path) +
                                  " with error: " + (why == nullptr ? "unknown" : why));
}

OrtStatus* RegisterFrom(void* handle, const char* path, OrtSessionOptions* options) {
  void* const symbol = dlsym(handle, kRegister);
  if (symbol == nullptr)
    return MakeStatus(ORT_FAIL, "Failed to find symbol " + std::string(kRegister) + " in library " + path);
  return CallRegister(symbol, options);
}

}  // namespace

OrtStatus* CreateCustomOpDomain(const char* domain, OrtCustomOpDomain** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = new OrtCustomOpDomain{domain, {}};
    return nullptr;
  });
}
void ReleaseCustomOpDomain(OrtCustomOpDomain* domain) noexcept { delete domain; }
OrtStatus* CustomOpDomain_Add(OrtCustomOpDomain* domain, const OrtCustomOp* op) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (op == nullptr || op->version == 0 || op->version > REWIRE_ORT_API_VERSION)
      return InvalidArgument("Unsupported version of the custom operator; supported are 1 to " +
                             std::to_string(REWIRE_ORT_API_VERSION));
    domain->operators.push_back(op);
    return nullptr;
  });
}
OrtStatus* AddCustomOpDomain(OrtSessionOptions* options, OrtCustomOpDomain* domain) noexcept {
  return Guard([&]() -> OrtStatus* {
    options->custom_ops.domains.push_back(domain);
    return nullptr;
  });
}

// The host closes the library when no session uses it any more.
OrtStatus* RegisterCustomOpsLibrary(OrtSessionOptions* options, const char* path, void** handle) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (OrtStatus* const failed = OpenLibrary(path, handle); failed != nullptr) return failed;
    return RegisterFrom(*handle, path, options);
  });
}
OrtStatus* RegisterCustomOpsLibrary_V2(OrtSessionOptions* options, const char* path) noexcept {
  return Guard([&]() -> OrtStatus* {
    void* handle = nullptr;
    if (OrtStatus* const failed = OpenLibrary(path, &handle); failed != nullptr) return failed;
    std::shared_ptr<void> library(handle, [](void* opened) { dlclose(opened); });
    options->custom_ops.libraries.push_back(library);
    return RegisterFrom(handle, path, options);
  });
}
// The function is one of the process, by its name.
OrtStatus* RegisterCustomOpsUsingFunction(OrtSessionOptions* options, const char* function) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (function == nullptr || *function == '\0')
      return InvalidArgument("RegisterCustomOpsUsingFunction: Registration function name must be specified.");
    void* const symbol = dlsym(RTLD_DEFAULT, function);
    if (symbol == nullptr)
      return MakeStatus(ORT_FAIL, "RegisterCustomOpsUsingFunction: Registration function was not found: " +
                                      std::string(function));
    return CallRegister(symbol, options);
  });
}

}  // namespace rewire::onnxruntime_api
