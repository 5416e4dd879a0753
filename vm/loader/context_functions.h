// SPDX-License-Identifier: Apache-2.0
// What libraries compiled by TVM call back through context variables: a variable `__X` of the library holds
// the address of the function `X`.
#pragma once

namespace rewire {

// The functions that Rewire provides itself, whichever tvm-ffi runtime is loaded: memory, threads, and the
// lookup in a library that Rewire has loaded. Null for other names.
void* ContextFunction(const char* name);

}  // namespace rewire
