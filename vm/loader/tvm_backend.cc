// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_backend.h"

#include <dlfcn.h>
#include <dlpack/dlpack.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/worker_thread.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/loader/ffi_runtime.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/loader/kernel_context.h"
#include "rewire/vm/memory/block_pool.h"
#include "rewire/vm/value/ffi_object.h"

namespace rewire {
namespace {

// Kernels of TVM up to 0.9 may rely on workspaces at multiples of 128 bytes, as BlockPool has them from this
// size on. TVM keeps smaller ones on the stack, so that hardly any grows.
constexpr std::uint64_t kSmallestWorkspace = 1025;
static_assert(BlockPool::BlockAlignment(kSmallestWorkspace) == 128);

// How long a task waits at a barrier for tasks that have not begun before it has threads made for them.
constexpr auto kBarrierPatience = std::chrono::milliseconds(1);

class ParallelLaunch;
thread_local ParallelLaunch* t_launch = nullptr;  // the one whose task runs on this thread

// One call of TvmBackendParallelLaunch. Tasks are taken in order by any free thread: the pool's threads, the
// calling thread, and threads made at a barrier. A pool may have fewer free threads than a launch has tasks.
// But at a barrier, all tasks must run at the same time.
class ParallelLaunch {
 public:
  ParallelLaunch(TvmParallelTask task, void* data, int num_task)
      : task_(task),
        data_(data),
        group_{this, num_task},
        outer_(t_launch),
        vm_(outer_ != nullptr ? outer_->vm_ : KernelContext::Current()),
        vm_mutex_(outer_ != nullptr ? outer_->vm_mutex_ : &own_vm_mutex_) {}

  int Run() {
    KernelApi()->parallel_for(
        0, group_.num_task, 1,
        [](void* self, std::int64_t begin, std::int64_t end) {
          static_cast<ParallelLaunch*>(self)->RunTasks(static_cast<int>(end - begin));
        },
        this);
    // Every task is taken now: no more helpers will come.
    std::unique_lock<std::mutex> lock(mutex_);
    const Array<WorkerThread> helpers = std::move(helpers_);
    lock.unlock();
    for (const WorkerThread& helper : helpers) helper.Join();
    lock.lock();
    if (!failed_) return 0;
    SetKernelError(error_.kind.c_str(), error_.message.c_str());
    return -1;
  }

  int Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t round = round_;
    ++waiting_;
    Settle();
    while (round_ == round && !failed_) {
      if (barrier_.wait_for(lock, kBarrierPatience) == std::cv_status::timeout && round_ == round)
        MakeHelpers();
    }
    return failed_ ? -1 : 0;
  }

  // Runs `use` with the VM as the thread's current one, on one thread of the launch at a time.
  template <typename Use>
  auto WithVm(const Use& use) {
    const std::lock_guard<std::mutex> lock(*vm_mutex_);
    const KernelContext context(vm_);
    return use();
  }

 private:
  void RunTasks(int most) {
    for (; most > 0; --most) {
      const int id = next_.fetch_add(1, std::memory_order_relaxed);
      if (id >= group_.num_task) return;
      ParallelLaunch* const before = std::exchange(t_launch, this);
      const int status = task_(id, &group_, data_);
      t_launch = before;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (status != 0) {
        // The error stands on this thread; the launching thread reports it.
        const auto take = FfiRuntimeSymbol(RTLD_DEFAULT, "TVMFFIErrorMoveFromRaised");
        KernelError error = TakeFfiError(reinterpret_cast<void (*)(void**)>(take));
        if (error.message.empty()) error.message = Format("task {} failed without setting an error", id);
        Fail(std::move(error));
      }
      ++finished_;
      Settle();
    }
  }

  // With the mutex held: lets the waiting tasks go when all have arrived, or when some never will.
  void Settle() {
    if (waiting_ == group_.num_task) {
      waiting_ = 0;
      ++round_;
      barrier_.notify_all();
    } else if (waiting_ > 0 && waiting_ + finished_ == group_.num_task) {
      Fail({"RuntimeError",
            "some tasks of a parallel launch ended without reaching the barrier of the others"});
    }
  }

  void Fail(KernelError error) {
    if (!failed_) error_ = std::move(error);
    failed_ = true;
    barrier_.notify_all();
  }

  // With the mutex held: a thread for each task that has not begun.
  void MakeHelpers() {
    for (int missing = group_.num_task - next_.load(std::memory_order_relaxed); missing > 0; --missing) {
      WorkerThread helper;
      const auto run = [](void* self) -> void* {
        static_cast<ParallelLaunch*>(self)->RunTasks(1);
        return nullptr;
      };
      if (!helper.Start(run, this)) {
        return Fail({"RuntimeError", "there are not enough threads for the tasks that meet at a barrier"});
      }
      helpers_.push_back(helper);
    }
  }

  const TvmParallelTask task_;
  void* const data_;
  TvmParallelGroup group_;
  ParallelLaunch* const outer_;
  Machine* const vm_;
  std::mutex own_vm_mutex_;
  std::mutex* const vm_mutex_;  // the outermost launch's: it guards the VM
  std::atomic<int> next_{0};

  std::mutex mutex_;  // guards the rest
  std::condition_variable barrier_;
  std::uint64_t round_ = 0;  // barriers passed
  int waiting_ = 0;          // at the current one
  int finished_ = 0;
  bool failed_ = false;
  KernelError error_;
  Array<WorkerThread> helpers_;
};

// Inside a task the VM's memory is shared with the other tasks.
template <typename Use>
auto WithVm(const Use& use) {
  return t_launch != nullptr ? t_launch->WithVm(use) : use();
}

// Memory of a device, which the VM keeps until the kernel returns. Later work of the stream may then use it
// again, in order.
void* DeviceWorkspace(DLDevice device, std::uint64_t bytes) {
  if (bytes > std::uint64_t{1} << 62) {
    SetKernelError("MemoryError", Format("no {} bytes of workspace", bytes).c_str());
    return nullptr;
  }
  const auto length = static_cast<std::int64_t>(bytes);
  RewireFFIAny tensor{};
  if (KernelApi()->new_tensor({kDLUInt, 8, 1}, 1, &length, device, &tensor) != 0) return nullptr;
  void* const address = RewireTensorOf(&tensor)->data;
  ReleaseAny(&tensor);
  return address;
}

}  // namespace

void* TvmBackendAllocWorkspace(int device_type, int device_id, std::uint64_t bytes, int /*dtype_code_hint*/,
                               int /*dtype_bits_hint*/) {
  if (device_type != kDLCPU) return DeviceWorkspace(MakeDevice(device_type, device_id), bytes);
  return WithVm([bytes] { return KernelApi()->workspace(std::max(bytes, kSmallestWorkspace)); });
}

int TvmBackendFreeWorkspace(int device_type, int /*device_id*/, void* pointer) {
  if (device_type != kDLCPU) return 0;  // it goes when the kernel returns
  if (WithVm([pointer] { return FreeWorkspace(pointer); })) return 0;
  SetKernelError("RuntimeError", "a workspace was freed that the VM did not give");
  return -1;
}

int TvmBackendParallelLaunch(TvmParallelTask task, void* data, int num_task) {
  const int tasks = num_task == 0 ? KernelApi()->thread_count() : num_task;
  if (tasks == 1) {
    // Nobody to meet or to wait for; its error stands where the kernel's own would.
    TvmParallelGroup alone{nullptr, 1};
    return task(0, &alone, data);
  }
  return ParallelLaunch(task, data, std::max(tasks, 0)).Run();
}

int TvmBackendParallelBarrier(int /*task_id*/, TvmParallelGroup* group) {
  if (group->num_task == 1) return 0;
  return static_cast<ParallelLaunch*>(group->sync_handle)->Wait();
}

}  // namespace rewire
