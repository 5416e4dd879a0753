// SPDX-License-Identifier: Apache-2.0
//
// Packed weights: weights in the layout that oneDNN's kernels read fastest, as a tensor of bytes. A program's
// `__init` makes them once.
//
// The bytes contain no description of the layout. Kernels that pack and kernels that use packed weights
// derive it from the same attributes. So no content of a tensor decides how memory is read.
#pragma once

#include <dnnl.hpp>

#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::onednn {

// Makes a tensor u8[bytes of `layout`] from the elements of `from`, which `plain` describes.
Status Pack(const dnnl::memory::desc& plain, const void* from, const dnnl::memory::desc& layout,
            RewireFFIAny* result);

// Checks that Pack can have made `packed` for this layout.
Status CheckPacked(const char* what, TensorView packed, const dnnl::memory::desc& layout);

}  // namespace rewire::kernel::onednn
