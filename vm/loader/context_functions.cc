// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/context_functions.h"

#include <string_view>

#include "rewire/base/message.h"
#include "rewire/vm/loader/classic_call.h"
#include "rewire/vm/loader/tvm_backend.h"
#include "rewire/vm/packed_function.h"

namespace rewire {
namespace {

int LookUpFromImports(void* context, const char* name, void** function) {
  *function = static_cast<const LibraryContext*>(context)->LookUp(name);
  if (*function != nullptr) return 0;
  SetKernelError(
      "RuntimeError",
      (Format("the library calls the function '{}', which is neither in it nor in the function registry",
              name))
          .c_str());
  return -1;
}

struct Exported {
  std::string_view name;
  void* function;
};

}  // namespace

void* ContextFunction(const char* name) {
  const Exported entries[] = {
      {"TVMBackendAllocWorkspace", reinterpret_cast<void*>(&TvmBackendAllocWorkspace)},
      {"TVMBackendFreeWorkspace", reinterpret_cast<void*>(&TvmBackendFreeWorkspace)},
      {"TVMBackendParallelLaunch", reinterpret_cast<void*>(&TvmBackendParallelLaunch)},
      {"TVMBackendParallelBarrier", reinterpret_cast<void*>(&TvmBackendParallelBarrier)},
      {"TVMFFIEnvModLookupFromImports", reinterpret_cast<void*>(&LookUpFromImports)},
      {"TVMBackendGetFuncFromEnv", reinterpret_cast<void*>(&LookUpFromImports)},  // its name up to TVM 0.25
      {"TVMFuncCall", reinterpret_cast<void*>(&ClassicFuncCall)},
      {"TVMAPISetLastError", reinterpret_cast<void*>(&ClassicSetLastError)},
  };
  for (const Exported& entry : entries) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace rewire
