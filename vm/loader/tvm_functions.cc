// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_functions.h"

#include <dlfcn.h>

#include <string>

#include "rewire/vm/loader/classic_call.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/loader/library_search.h"
#include "rewire/vm/loader/tvm_backend.h"

namespace rewire {

Result<Span<const tvm_runtime::Function>> TvmFunctions() {
  std::string tried;
  const std::string path = FindFile(ModuleDirectories(), tvm_runtime::kLibrary, &tried);
  if (path.empty()) {
    return Fail(StatusCode::kNotFound,
                "it calls functions of TVM's runtime ('{}...'), and Rewire's library of them was not found; "
                "tried {}; set REWIRE_LIBRARY_PATH to the directory that has it",
                tvm_runtime::kPrefix, tried);
  }
  // Opened again, it is the same library.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* bind = library != nullptr ? dlsym(library, tvm_runtime::kBind) : nullptr;
  if (bind == nullptr) return Fail(StatusCode::kIo, "functions of TVM's runtime: {}", dlerror());
  static const tvm_runtime::Host kHost = {KernelApi(), &ClassicSetLastError, &TvmBackendAllocWorkspace,
                                          &TvmBackendFreeWorkspace};
  std::size_t count = 0;
  const tvm_runtime::Function* functions = reinterpret_cast<tvm_runtime::Bind>(bind)(&kHost, &count);
  return Span<const tvm_runtime::Function>(functions, count);
}

}  // namespace rewire
