// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/memory/vm_memory.h"

namespace rewire {

Status VmMemory::NoMemory(const char* what) const {
  if (account->over_limit() || home->over_limit()) {
    return Fail(StatusCode::kMemoryLimit, "no memory for {} within the VM's byte limit", what);
  }
  return Fail(StatusCode::kOutOfMemory, "the allocator has no memory for {}", what);
}

}  // namespace rewire
