// SPDX-License-Identifier: Apache-2.0
// The functions that code compiled by TVM calls back for scratch memory and threads, over Rewire's kernel
// table. The same for the classic and the tvm-ffi ABI. They may be called only inside a kernel that a VM
// runs.
#pragma once

#include <cstdint>

namespace rewire {

// A task knows its launch by this. The layout is TVM's.
struct TvmParallelGroup {
  void* sync_handle;
  std::int32_t num_task;
};
using TvmParallelTask = int (*)(int task_id, TvmParallelGroup* group, void* data);

extern "C" {

// Allocates scratch memory on the host. Returns null, with the error set, for other devices or if there is
// none. The memory is released when the kernel returns, so freeing it is optional.
void* TvmBackendAllocWorkspace(int device_type, int device_id, std::uint64_t bytes, int dtype_code_hint,
                               int dtype_bits_hint);
int TvmBackendFreeWorkspace(int device_type, int device_id, void* pointer);

// Runs task(0 .. num_task - 1) on the program's thread pool; num_task 0 means one task per thread. Returns
// when all are done: 0, or -1 if a task failed.
int TvmBackendParallelLaunch(TvmParallelTask task, void* data, int num_task);
// Called by every task of a launch. Returns when all tasks have called it.
int TvmBackendParallelBarrier(int task_id, TvmParallelGroup* group);

}  // extern "C"

}  // namespace rewire
