// SPDX-License-Identifier: Apache-2.0
// Weights in the layout that oneDNN's kernels read fastest, as a tensor of bytes that a program's `__init`
// makes once.
//
// The bytes carry no description: kernels that pack and kernels that use derive the layout from the same
// attributes, so that nothing in a tensor decides how memory is read.
#pragma once

#include <dnnl.hpp>

#include "vm/kernel/kernel.h"
#include "vm/kernel/status.h"
#include "vm/kernel/tensor_view.h"

namespace rewire::kernel::onednn {

// A new tensor u8[bytes of `layout`] with the elements of `from`, described by `plain`.
Status Pack(const dnnl::memory::desc& plain, const void* from, const dnnl::memory::desc& layout,
            RewireFFIAny* result);

// That `packed` is a tensor that Pack can have made for this layout.
Status CheckPacked(const char* what, TensorView packed, const dnnl::memory::desc& layout);

}  // namespace rewire::kernel::onednn
