// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/ffi_runtime.h"

#include <dlfcn.h>

#include <mutex>

#include "rewire/vm/loader/context_functions.h"
#include "rewire/vm/loader/ffi_shim/host.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/loader/library_search.h"
#include "rewire/vm/value/ffi_object.h"

namespace rewire {
namespace {

constexpr char kSoname[] = "libtvm_ffi.so";

void GiveError(void (*sink)(const char* kind, const char* message)) {
  const KernelError error = TakeKernelError();
  if (!error.kind.empty() || !error.message.empty()) sink(error.kind.c_str(), error.message.c_str());
}

std::string ToString(const RewireFFIByteArray& bytes) {
  return bytes.data != nullptr ? std::string(bytes.data, bytes.size) : std::string();
}

// Loaded globally, because libraries refer to the runtime's functions without naming a library. Behind a real
// runtime it still provides functions that the real one does not have: those that TVM's libtvm_runtime.so
// used to have.
Status LoadShim() {
  std::string tried;
  const std::string path = FindFile(ModuleDirectories(), kSoname, &tried);
  if (path.empty()) {
    return Fail(StatusCode::kNotFound,
                "the tvm-ffi runtime {} is not loaded and Rewire's own was not found; tried {}; set "
                "REWIRE_LIBRARY_PATH to the directory that has it",
                kSoname, tried);
  }
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (library == nullptr) return Fail(StatusCode::kIo, "tvm-ffi runtime {}: {}", path, dlerror());
  const auto bind = reinterpret_cast<RewireFfiShimBind>(dlsym(library, REWIRE_FFI_SHIM_BIND));
  if (bind == nullptr) return {};  // somebody has put a real one there
  static const RewireFfiShimHost kHost = {KernelApi(), &GiveError, &ContextFunction};
  bind(&kHost);
  return {};
}

}  // namespace

Status EnsureFfiRuntime() {
  static std::mutex mutex;
  static bool loaded = false;
  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded) return {};
  // A real one that is already there comes first, and becomes visible to libraries that do not name it.
  const bool has_real = dlopen(kSoname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD) != nullptr;
  if (Status status = LoadShim(); !status && !has_real) return status;
  loaded = true;
  return {};
}

void* FfiRuntimeSymbol(void* library, const char* name) {
  void* symbol = dlsym(RTLD_DEFAULT, name);
  return symbol != nullptr ? symbol : dlsym(library, name);
}

KernelError TakeFfiError(void (*move_from_raised)(void** error)) {
  // Both are cleared: a library may report in either way.
  KernelError error = TakeKernelError();
  void* raised = nullptr;
  if (move_from_raised != nullptr) move_from_raised(&raised);
  if (raised == nullptr) return error;
  auto* object = static_cast<RewireFFIObject*>(raised);
  const auto* cell = reinterpret_cast<const RewireFFIErrorCell*>(object + 1);
  error = {ToString(cell->kind), ToString(cell->message)};
  ReleaseObject(object);
  return error;
}

}  // namespace rewire
