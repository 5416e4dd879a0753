// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/library_abi.h"

#include <algorithm>

namespace rewire {

LibraryAbi FindAbi(const ElfFile& library) {
  // First: 0.21 exports __tvm_ffi_<name> too.
  if (library.Defines("__tvm_ffi_library_ctx")) return LibraryAbi::kTvmFfi021;
  if (library.Defines("__rewire_kernel_table") || library.DefinesPrefix("__tvm_ffi_"))
    return LibraryAbi::kTvmFfi;
  // Compiled code has a context variable only for what it calls; every function can fail.
  for (const char* name :
       {"__TVMAPISetLastError", "__TVMFuncCall", "__tvm_module_ctx", "__tvm_main__", "__tvm_dev_mblob"}) {
    if (library.Defines(name)) return LibraryAbi::kTvmClassic;
  }
  const bool any = std::ranges::any_of(library.functions(), &IsPlainName);
  return any ? LibraryAbi::kUnmarked : LibraryAbi::kNone;
}

bool IsPlainName(std::string_view function) { return function.front() != '_'; }

}  // namespace rewire
