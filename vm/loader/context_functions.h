// SPDX-License-Identifier: Apache-2.0
// What libraries compiled by TVM call back through context variables: a variable `__X` of the library holds
// the address of the function `X`.
#pragma once

#include <string>

namespace rewire {

// What the library's own context variable points at (`__tvm_module_ctx`, `__tvm_ffi__library_ctx`): compiled
// code gives it back when it looks a function up by name.
class LibraryContext {
 public:
  // A function handle of the library's ABI, owned by the library; null when there is none of this name.
  // Thread-safe.
  virtual void* LookUp(const std::string& name) const = 0;

 protected:
  ~LibraryContext() = default;
};

// The functions that Rewire provides itself, whichever tvm-ffi runtime is loaded: memory, threads, the lookup
// by name, calls and errors of the classic ABI. Null for other names.
void* ContextFunction(const char* name);

}  // namespace rewire
