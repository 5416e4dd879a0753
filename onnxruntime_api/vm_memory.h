// SPDX-License-Identifier: Apache-2.0
//
// Allocators for the VMs of sessions, and so for the results that hosts get.
#pragma once

#include "rewire/onnxruntime_api/api.h"
#include "rewire/vm/allocator.h"

namespace rewire::onnxruntime_api {

// The default memory. It keeps large blocks that hosts have released, at most 16 MB of them. So the next run
// writes its outputs into pages that the process has already. Thread-safe.
Allocator KeepingAllocator();
// Frees the blocks that are kept. Called when a model goes.
void FreeKeptBlocks();

// The memory of a host's own allocator, which must outlive what is made of it.
Allocator HostsAllocator(OrtAllocator* allocator);

}  // namespace rewire::onnxruntime_api
