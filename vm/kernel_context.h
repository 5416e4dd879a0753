// SPDX-License-Identifier: Apache-2.0
// Which VM the calling thread is running, for kernels that ask through their table (kernel_api.h).
#pragma once

#include "vm/vm_impl.h"

namespace rewire {

// Makes `vm` the thread's current one for a scope. Scopes nest: a kernel may run a VM of its own.
class KernelContext {
 public:
  explicit KernelContext(VirtualMachine::Impl* vm) : before_(current_) { current_ = vm; }
  ~KernelContext() { current_ = before_; }
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;

  // Null outside a run.
  static VirtualMachine::Impl* Current() { return current_; }

 private:
  // initial-exec: reading it is one instruction also in a shared library.
  __attribute__((tls_model("initial-exec"))) static constinit thread_local VirtualMachine::Impl* current_;
  VirtualMachine::Impl* before_;
};

}  // namespace rewire
