// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/vm_hold.h"

namespace rewire {

Status EmptyVm() {
  return Fail(StatusCode::kInvalidArgument, "this VirtualMachine is empty: it was moved from");
}

Status VmHold::RefusalOf(bool empty) {
  if (empty) return EmptyVm();
  return Fail(
      StatusCode::kBusy,
      "this VirtualMachine is running; one thread at a time may use it (make one per thread, they share the "
      "Program)");
}

}  // namespace rewire
