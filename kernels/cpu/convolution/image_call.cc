// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/image_call.h"

#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

Status ResolveImageCall(const ImageAttributes& attributes, TensorView x, TensorView w,
                        const std::optional<TensorView>& bias, const std::optional<TensorView>& addend,
                        TensorView out, ImageCall* call) {
  Checks checks;
  checks.Operands("x", x, "w", w, out);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (Status s = CheckDTypes(x, w, out); !s.ok()) return s;
  call->unit = w.Is<BFloat16>() ? PanelUnit::kPair : w.Is<Float16>() ? PanelUnit::kHalf : PanelUnit::kFloat;
  call->x_rounded = x.Is<BFloat16>();
  if (Status s = attributes.Resolve(x, out, &call->window); !s.ok()) return s;
  if (Status s = CheckAdded(bias, addend, attributes.channels, out, true); !s.ok()) return s;
  call->images = x.dim(0);
  call->in_channels = x.dim(x.ndim() - 1);
  call->out_channels = attributes.channels;
  call->x = static_cast<const float*>(x.raw_data());
  call->w = static_cast<const float*>(w.raw_data());
  call->bias = IsGiven(bias) ? bias->data<float>() : nullptr;
  call->addend = AddendOf(addend);
  MakeLinesLong(&call->window);
  call->out = static_cast<float*>(out.raw_data());
  call->rounded = out.Is<BFloat16>() ? static_cast<std::uint16_t*>(out.raw_data()) : nullptr;
  return Status();
}

}  // namespace rewire::kernel::cpu
