// SPDX-License-Identifier: Apache-2.0
#include "vm/loader/library_abi.h"

namespace rewire {

LibraryAbi FindAbi(const ElfFile& library) {
  // First: 0.21 exports __tvm_ffi_<name> too.
  if (library.Defines("__tvm_ffi_library_ctx")) return LibraryAbi::kTvmFfi021;
  if (library.Defines("__rewire_kernel_table") || library.DefinesPrefix("__tvm_ffi_"))
    return LibraryAbi::kTvmFfi;
  if (library.Defines("__tvm_module_ctx") || library.Defines("__tvm_main__") ||
      library.Defines("__tvm_dev_mblob")) {
    return LibraryAbi::kTvmClassic;
  }
  return LibraryAbi::kNone;
}

}  // namespace rewire
