// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/cpu/shape/shape_error.h"

namespace rewire::kernel::cpu {

Status ConvAttributes::Read(Attributes& attributes) {
  window.Read(attributes, false, false);
  groups = attributes.Int("group", 1, 1);
  return window.Check();
}

Status ConvAttributes::Resolve(ShapeView x, ShapeView w, Window* resolved, Dims* result) const {
  if (Status s = contract::CheckChannels(x, w, groups, kShapeError); !s.ok()) return s;
  if (w[0] % groups != 0)
    return ValueError("w has shape ", w, ": ", w[0], " is no multiple of ", groups, " groups");
  if (Status s = window.Resolve(x, ShapeView(w.data() + 2, w.size() - 2), resolved); !s.ok()) return s;
  *result = resolved->OutputDims(x[0], w[0]);
  return Status();
}

}  // namespace rewire::kernel::cpu
