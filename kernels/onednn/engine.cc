// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/onednn/engine.h"

#include <omp.h>

#include "rewire/vm/kernel/kernel.h"

namespace rewire::kernel::onednn {

const dnnl::engine& Engine() {
  static const auto* const kEngine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *kEngine;
}

ProgramThreads::ProgramThreads() : before_(omp_get_max_threads()) {
  const int wanted = __rewire_kernel_api->thread_count();
  if (wanted != before_) omp_set_num_threads(wanted);
}

ProgramThreads::~ProgramThreads() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

Status Execute(const dnnl::primitive& primitive, const dnnl_exec_arg_t* arguments, int count) {
  thread_local dnnl::stream stream(Engine());
  const dnnl_status_t status = dnnl_primitive_execute(primitive.get(), stream.get(), count, arguments);
  if (status != dnnl_success)
    return RuntimeError("oneDNN: execution failed with status ", static_cast<int>(status));
  return Status();
}

Status Scratch(const dnnl::memory::desc& desc, void** memory) {
  *memory = nullptr;
  if (desc.get_size() == 0) return Status();
  *memory = __rewire_kernel_api->workspace(desc.get_size());
  return *memory != nullptr ? Status() : Status::AlreadySet();
}

dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace rewire::kernel::onednn
