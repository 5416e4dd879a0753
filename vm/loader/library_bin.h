// SPDX-License-Identifier: Apache-2.0
// `__tvm_ffi__library_bin`: the modules that a compiler put into a tvm-ffi library.
//
//   u64 bytes that follow
//   u64 n+1, u64[n+1]   where each module's imports start in the next list
//   u64 m, u64[m]       imports, as module indices
//   per module: u64 length, kind; then, unless the kind is "_lib", u64 length, content
// Module 0 is the root. "_lib" stands for the library's own functions.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

struct LibraryModule {
  std::string kind;
  Span<const std::byte> content;  // a part of the parsed bytes
};

// `bytes` is the whole symbol. Errors: kInvalidFile if the content is inconsistent.
Result<Array<LibraryModule>> ParseLibraryBin(Span<const std::byte> bytes);

inline constexpr char kOwnFunctionsKind[] = "_lib";

}  // namespace rewire
