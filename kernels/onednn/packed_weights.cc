// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/onednn/packed_weights.h"

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/onednn/engine.h"

namespace rewire::kernel::onednn {

Status Pack(const dnnl::memory::desc& plain, const void* from, const dnnl::memory::desc& layout,
            RewireFFIAny* result) {
  const auto bytes = static_cast<std::int64_t>(layout.get_size());
  if (__rewire_kernel_api->new_tensor(DTypeOf<std::uint8_t>(), 1, &bytes, DLDevice{kDLCPU, 0}, result) != 0) {
    return Status::AlreadySet();
  }
  const dnnl::memory source(plain, Engine(), const_cast<void*>(from));
  const dnnl::memory target(layout, Engine(), RewireTensorOf(result)->data);
  const dnnl::reorder::primitive_desc desc(source, target, UserScratch());
  void* scratch = nullptr;
  if (Status s = Scratch(desc.scratchpad_desc(), &scratch); !s.ok()) return s;
  const dnnl::memory scratchpad(desc.scratchpad_desc(), Engine(), scratch);
  const dnnl_exec_arg_t arguments[] = {
      {DNNL_ARG_FROM, source.get()}, {DNNL_ARG_TO, target.get()}, {DNNL_ARG_SCRATCHPAD, scratchpad.get()}};
  return Execute(dnnl::reorder(desc), arguments, 3);
}

Status CheckPacked(const char* what, TensorView packed, const dnnl::memory::desc& layout) {
  if (Status s = cpu::CheckDense(what, packed); !s.ok()) return s;
  const auto bytes = static_cast<std::int64_t>(layout.get_size());
  if (packed.Is<std::uint8_t>() && packed.ndim() == 1 && packed.dim(0) == bytes) return Status();
  return ValueError(what, " is ", DTypeName(packed.dtype()), packed.dims(), ", expected u8[", bytes,
                    "]: weights packed with the same attributes");
}

}  // namespace rewire::kernel::onednn
