// SPDX-License-Identifier: Apache-2.0
//
// Detects the calling convention of a shared library from its symbols alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewire/vm/loader/elf_file.h"

namespace rewire {

enum class LibraryAbi : std::uint8_t {
  kNone,        // no known kernels
  kTvmFfi,      // tvm-ffi (TVM 0.22 and later, Rewire's own): __tvm_ffi_<name>, __rewire_kernel_table
  kTvmFfi021,   // TVM 0.21: the same functions with other type numbers
  kTvmClassic,  // TVM up to 0.20: plain names, __tvm_module_ctx
  kUnmarked,    // functions under plain names and no mark: TVM's target "c" with several kernels
};

LibraryAbi FindAbi(const ElfFile& library);

// Whether an exported function may be a kernel of the classic ABI. The others are the compiler's and the
// linker's.
bool IsPlainName(std::string_view function);

}  // namespace rewire
