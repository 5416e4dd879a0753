// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/onednn/prepared.h"

#include <utility>

#include "rewire/vm/kernel/kernel.h"

namespace rewire::kernel::onednn {

Status Scratchpad::Take(std::size_t bytes, void** memory) {
  if (bytes > bytes_) {
    memory_ = __rewire_kernel_api->workspace(bytes);
    if (memory_ == nullptr) return Status::AlreadySet();
    bytes_ = bytes;
  }
  *memory = bytes == 0 ? nullptr : memory_;
  return Status();
}

Status Prepared::Run(const void* x, TensorView weights, TensorView bias, void* out, Scratchpad& scratch) {
  void* scratch_memory = nullptr;
  if (Status s = scratch.Take(scratch_.get_desc().get_size(), &scratch_memory); !s.ok()) return s;
  x_.set_data_handle(const_cast<void*>(x));
  weights_.set_data_handle(weights.raw_data());
  bias_.set_data_handle(bias.raw_data());
  out_.set_data_handle(out);
  scratch_.set_data_handle(scratch_memory);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, x_.get()},
                                       {DNNL_ARG_WEIGHTS, weights_.get()},
                                       {DNNL_ARG_BIAS, bias_.get()},
                                       {DNNL_ARG_DST, out_.get()},
                                       {DNNL_ARG_SCRATCHPAD, scratch_.get()}};
  return Execute(primitive_, arguments, 5);
}

PreparedCache& PreparedCache::OfThisKernel() {
  auto* cache = static_cast<PreparedCache*>(__rewire_kernel_api->get_slot());
  if (cache == nullptr) {
    cache = new PreparedCache;
    __rewire_kernel_api->set_slot(cache, [](void* state) { delete static_cast<PreparedCache*>(state); });
  }
  return *cache;
}

Prepared* PreparedCache::Find(ShapeView shape) {
  for (Item& item : items_) {
    if (ShapeView(item.shape.data(), item.shape.size()) == shape) return item.prepared.get();
  }
  return nullptr;
}

Prepared* PreparedCache::Add(ShapeView shape, std::unique_ptr<Prepared> prepared) {
  if (items_.size() == kMost) items_.erase(items_.begin());
  items_.push_back({std::vector<std::int64_t>(shape.begin(), shape.end()), std::move(prepared)});
  return items_.back().prepared.get();
}

}  // namespace rewire::kernel::onednn
