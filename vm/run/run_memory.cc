// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/run_memory.h"

namespace rewire {

void RunMemory::Release() {
  ready = false;
  stack.Release();
  frames.Release();
  args.Release();
  temporaries.Release();
  workspaces.Release();
  destinations.Release();
  leaf_values.Release();
}

void RunMemory::Shrink() {
  blocks.ForgetLarge();
  stack.Shrink();
  frames.Shrink();
  args.Shrink();
  ready = false;  // the last call of a kernel may have had few arguments
  temporaries.Shrink();
  leaf_values.Shrink();
}

}  // namespace rewire
