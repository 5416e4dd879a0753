// SPDX-License-Identifier: Apache-2.0
//
// KernelContext: which VM the calling thread is running. Kernels need it for their function table
// (kernel_api.h).
#pragma once

namespace rewire {

struct Machine;  // vm/run/machine.h

// Makes `vm` the thread's current VM for a scope. Scopes nest, because a kernel may run a VM itself.
class KernelContext {
 public:
  explicit KernelContext(Machine* vm) : before_(current_) { current_ = vm; }
  ~KernelContext() { current_ = before_; }
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;

  // Null outside a run.
  static Machine* Current() { return current_; }

 private:
  // initial-exec: reading the variable is one instruction, even in a shared library.
  __attribute__((tls_model("initial-exec"))) static constinit thread_local Machine* current_;
  Machine* before_;
};

}  // namespace rewire
