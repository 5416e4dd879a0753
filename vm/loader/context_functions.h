// SPDX-License-Identifier: Apache-2.0
//
// Functions that libraries compiled by TVM call back through context variables. A variable `__X` of the
// library holds the address of the function `X`.
#pragma once

#include <string>

namespace rewire {

// The object that the library's context variable points to (`__tvm_module_ctx`, `__tvm_ffi__library_ctx`).
// Compiled code passes it back when it looks a function up by name.
class LibraryContext {
 public:
  // Returns a function handle of the library's ABI, which the library owns. Null if there is none of this
  // name. Thread-safe.
  virtual void* LookUp(const std::string& name) const = 0;

 protected:
  ~LibraryContext() = default;
};

// The functions that Rewire provides itself, whichever tvm-ffi runtime is loaded: memory, threads, lookup by
// name, and calls and errors of the classic ABI. Null for other names.
void* ContextFunction(const char* name);

}  // namespace rewire
