// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/moving.h"

namespace rewire::kernel::device {

void Moving::Append(std::int64_t dim, std::int64_t from_step, std::int64_t to_step) {
  count *= dim;
  if (dim == 1) return;
  if (move.rank > 0 && move.from_steps[move.rank - 1] == from_step * dim &&
      move.to_steps[move.rank - 1] == to_step * dim) {
    move.dims[move.rank - 1] *= static_cast<int>(dim);
  } else {
    move.dims[move.rank++] = static_cast<int>(dim);
  }
  move.from_steps[move.rank - 1] = static_cast<int>(from_step);
  move.to_steps[move.rank - 1] = static_cast<int>(to_step);
}

Status Moving::Run(TensorView x, TensorView out) const {
  Form form{};
  if (Status s = MoveForm("x", x, &form); !s.ok()) return s;
  Call call(out, Program::kMovement, form, "move");
  call.Tensor(x).Tensor(out).Value(move).Int(count);
  return call.Each(count);
}

Status CheckMove(TensorView x, TensorView out) {
  return DeviceChecks().On("out", out).Beside("x", x, out).SameDType("out", out, "x", x).Take();
}

Status CopyWhole(TensorView x, TensorView out) {
  if (out.raw_data() == x.raw_data()) return Status();
  Moving moving;
  moving.Append(x.size(), 1, 1);
  return moving.Run(x, out);
}

}  // namespace rewire::kernel::device
