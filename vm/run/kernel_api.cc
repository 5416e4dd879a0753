// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/kernel_api.h"

#include <atomic>
#include <memory>
#include <new>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/vm/kernel/branches.h"
#include "rewire/vm/loader/kernel_context.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

constinit thread_local Machine* KernelContext::current_ = nullptr;

namespace {

// The VM whose kernel is running on this thread. If there is none, the error is set and the caller must fail.
Machine* CurrentVm() {
  Machine* vm = KernelContext::Current();
  if (vm == nullptr) SetKernelError("RuntimeError", "called outside a kernel that a VM runs");
  return vm;
}

KernelSlot& CurrentSlot(Machine* vm) {
  return vm->slots[vm->current_call[WordOf(Opcode::kInvokePacked, "kernel")]];
}

void* GetSlot() {
  Machine* vm = CurrentVm();
  return vm == nullptr ? nullptr : CurrentSlot(vm).state;
}

void SetSlot(void* state, void (*deleter)(void*)) {
  Machine* vm = CurrentVm();
  if (vm == nullptr) {
    if (deleter != nullptr) deleter(state);
    return;
  }
  const KernelSlot before = std::exchange(CurrentSlot(vm), {state, deleter});
  if (before.deleter != nullptr) before.deleter(before.state);
}

// The VM for which this thread works, and what KernelContext named when that began: in a body of a
// parallel-for, or in a branch. A worker has no VM of its own. With a host's pool, a thread may help one VM
// while a kernel of another VM waits on the same thread.
struct Work {
  const Machine* vm = nullptr;
  const Machine* context = nullptr;
  RewireBranch* branch = nullptr;
};
__attribute__((tls_model("initial-exec"))) constinit thread_local Work t_work;

bool IsWorking() { return KernelContext::Current() == t_work.context; }

RewireBranch* CurrentBranch() { return IsWorking() ? t_work.branch : nullptr; }

void* BlockOf(RewireBranch* branch, std::uint64_t bytes) {
  const std::uint64_t left = branch->bytes - branch->used;
  if (bytes > left || left == 0) return nullptr;
  void* block = static_cast<char*>(branch->memory) + branch->used;
  branch->used += ((bytes | 1) + 63) & ~std::uint64_t{63};
  return block;
}

void* TakeWorkspace(std::uint64_t bytes) {
  void* block = nullptr;
  if (RewireBranch* branch = CurrentBranch(); branch != nullptr) {
    block = BlockOf(branch, bytes);
  } else {
    Machine* vm = CurrentVm();
    if (vm == nullptr) return nullptr;
    if (bytes <= BlockPool::kMaxBlock) block = vm->heap.pool().Take(bytes);
    if (block != nullptr && !vm->run.workspaces.Push({block, bytes})) {
      vm->heap.pool().Give(block, bytes);
      block = nullptr;
    }
  }
  if (block == nullptr) {
    SetKernelError("MemoryError", Format("no {} bytes of workspace", bytes).c_str());
  }
  return block;
}

bool GiveWorkspace(Machine* vm, void* block) {
  // Mostly the last one taken.
  for (std::uint32_t i = vm->run.workspaces.size(); i-- > 0;) {
    if (vm->run.workspaces[i].block != block) continue;
    vm->heap.pool().Give(block, vm->run.workspaces[i].bytes);
    vm->run.workspaces[i] = vm->run.workspaces.back();
    vm->run.workspaces.Pop(vm->run.workspaces.size() - 1);
    return true;
  }
  return false;
}

// The pool of the running VM. Null outside a run, on a worker's thread and in a branch: there, loops are not
// split any further.
ThreadPool* CurrentPool() {
  const Machine* vm = CurrentBranch() != nullptr ? nullptr : KernelContext::Current();
  return vm == nullptr ? nullptr : vm->rep.threads;
}

// A body that may ask on every thread whether to go on.
struct BodyOfVm {
  const Machine* vm;
  void (*body)(void*, std::int64_t, std::int64_t);
  void* data;

  static void Run(void* of, std::int64_t begin, std::int64_t end) {
    const auto* self = static_cast<const BodyOfVm*>(of);
    const Work before = std::exchange(t_work, {self->vm, KernelContext::Current()});
    self->body(self->data, begin, end);
    t_work = before;
  }
};

void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain,
                 void (*body)(void*, std::int64_t, std::int64_t), void* data) {
  ThreadPool* pool = CurrentPool();
  if (pool == nullptr) {
    if (begin < end) body(data, begin, end);
    return;
  }
  BodyOfVm of_vm{KernelContext::Current(), body, data};
  pool->ParallelFor(begin, end, grain, &BodyOfVm::Run, &of_vm);
}

std::int32_t ThreadCount() {
  const ThreadPool* pool = CurrentPool();
  return pool == nullptr ? 1 : pool->thread_count();
}

// Branches that run at once. The first one to fail says why.
struct BranchesOfVm {
  const Machine* vm;
  RewireBranch* branches;
  std::atomic<bool> failed{false};
  const char* doing = nullptr;
  std::unique_ptr<const KernelError> error;  // null if there was no memory for it

  static void Run(void* of, std::int64_t begin, std::int64_t end) {
    auto* self = static_cast<BranchesOfVm*>(of);
    for (; begin < end && !self->failed.load(std::memory_order_relaxed); ++begin) {
      RewireBranch* branch = &self->branches[begin];
      const Work before = std::exchange(t_work, {self->vm, KernelContext::Current(), branch});
      const int outcome = branch->run(branch);
      t_work = before;
      if (outcome == 0 || self->failed.exchange(true)) continue;
      self->doing = branch->doing;
      self->error.reset(new (std::nothrow) KernelError(TakeKernelError()));
    }
  }
};

int RunBranches(RewireBranch* branches, std::int32_t count) {
  const Machine* vm = CurrentVm();
  if (vm == nullptr) return -1;
  BranchesOfVm of_vm{vm, branches, false, nullptr, nullptr};
  vm->rep.threads->ParallelFor(0, count, 1, &BranchesOfVm::Run, &of_vm);
  if (of_vm.error != nullptr) {
    const char* doing = of_vm.doing != nullptr ? of_vm.doing : "";
    SetKernelError(of_vm.error->kind.c_str(), Format("{}{}", doing, of_vm.error->message).c_str());
  }
  return of_vm.failed.load(std::memory_order_relaxed) ? -1 : 0;
}

// The running VM's stream on a device, for a kernel that is about to give it work.
Result<DeviceStreams::Stream*> StreamForWork(Machine* vm, DLDevice device) {
  DeviceStreams::Stream* stream = vm->streams.FindMade(device);
  if (stream == nullptr) {
    Result<DeviceStreams::Stream*> found = vm->StreamOf(device, /*events=*/false);
    if (!found) return found;
    stream = *found;
  }
  vm->stream_asked = true;
  const Frame& frame = vm->run.frames.back();
  const std::uint32_t* call = vm->current_call;
  DeviceWork::Note(stream, {frame.function, static_cast<std::uint32_t>(call - frame.code)});
  return stream;
}

void* Stream(std::int32_t device_type, std::int32_t device_id) {
  Machine* vm = KernelContext::Current();
  if (vm == nullptr) return nullptr;
  const Result<DeviceStreams::Stream*> stream = StreamForWork(vm, MakeDevice(device_type, device_id));
  if (stream) return (*stream)->stream;
  // A stream that does not exist is an answer.
  if (stream.error().code() != StatusCode::kInvalidArgument) {
    SetKernelError("RuntimeError", stream.error().message().c_str());
  }
  return nullptr;
}

int Device(DLDevice device, const RewireDeviceApi** api, void** stream) {
  Machine* vm = CurrentVm();
  if (vm == nullptr) return -1;
  const Result<DeviceStreams::Stream*> found = StreamForWork(vm, device);
  if (!found) {
    const bool none = found.error().code() == StatusCode::kInvalidArgument;
    SetKernelError(none ? "ValueError" : "RuntimeError", found.error().message().c_str());
    return -1;
  }
  *api = (*found)->api;
  *stream = (*found)->stream;
  return 0;
}

int Cancelled() {
  const Machine* vm = KernelContext::Current();
  if (IsWorking() && t_work.vm != nullptr) vm = t_work.vm;
  if (vm == nullptr) return 0;
  return vm->interrupts.cancelled() || vm->interrupts.late() ? 1 : 0;
}

// Passes an object with one local reference to a kernel. The VM keeps that reference until the call returns,
// and the kernel gets a strong one.
int HandOut(Machine* vm, std::int32_t kind, Object* object, RewireFFIAny* result) {
  if (object == nullptr || !vm->run.temporaries.Push(MakeAny(kind, object))) {
    if (object != nullptr) vm->heap.Release(object);
    const Status device = vm->heap.TakeDeviceFailure();
    SetKernelError("MemoryError", device ? "no memory for a new object" : device.error().message().c_str());
    return -1;
  }
  object->AddStrong();
  *result = MakeAny(kind, object);
  return 0;
}

int NewTensor(DLDataType dtype, std::int32_t rank, const std::int64_t* shape, DLDevice device,
              RewireFFIAny* result) {
  Machine* vm = CurrentVm();
  if (vm == nullptr) return -1;
  const LinkedDevice* found = vm->streams.Entry(device);
  const bool valid = rank >= 0 && rank <= kMaxRank && IsValidDType(dtype) &&
                     TensorBytes(dtype, {shape, static_cast<std::size_t>(rank)}).has_value();
  if (found == nullptr || !valid) {
    SetKernelError("ValueError", found == nullptr
                                     ? "new_tensor: the executable does not name this device"
                                     : "new_tensor: a dimension is negative or the size overflows");
    return -1;
  }
  return HandOut(vm, kTensorKind,
                 NewHeapTensor(vm->heap, *found, dtype, {shape, static_cast<std::size_t>(rank)}), result);
}

bool IsAdt(const RewireFFIAny* value) { return value->type_index == kAdtKind; }

int NewAdt(std::uint32_t tag, std::int32_t size, const RewireFFIAny* fields, RewireFFIAny* result) {
  Machine* vm = CurrentVm();
  if (vm == nullptr) return -1;
  if (size < 0) {
    SetKernelError("ValueError", "new_adt: negative size");
    return -1;
  }
  for (std::int32_t i = 0; i < size; ++i) {
    const std::int32_t kind = fields[i].type_index;
    const bool ours =
        IsObjectKind(kind) && IsRewireObject(ObjectOf(fields[i])) && vm->heap.MayHold(ObjectOf(fields[i]));
    if (!ours && kind != kRewireFFIInt) [[unlikely]] {
      SetKernelError("TypeError",
                     Format("new_adt: field {} is no tensor, integer or ADT of the VM", i).c_str());
      return -1;
    }
  }
  TupleObject* tuple = vm->heap.NewTuple(kAdtKind, tag, static_cast<std::uint32_t>(size));
  for (std::int32_t i = 0; tuple != nullptr && i < size; ++i) {
    ObjectHeap::Retain(fields[i]);
    tuple->fields()[i] = fields[i];
  }
  return HandOut(vm, kAdtKind, tuple, result);
}

std::int32_t AdtSize(const RewireFFIAny* value) {
  return IsAdt(value) ? static_cast<std::int32_t>(TupleOf(*value)->count) : -1;
}

std::uint32_t AdtTag(const RewireFFIAny* value) { return IsAdt(value) ? TupleOf(*value)->tag : 0; }

RewireFFIAny FieldForKernel(RewireFFIAny field) {
  if (field.type_index == kInt32Kind) field.type_index = kRewireFFIInt;
  return field;
}

int AdtField(const RewireFFIAny* value, std::int32_t index, RewireFFIAny* field) {
  if (index < 0 || index >= AdtSize(value)) {
    SetKernelError("IndexError", "adt_field: no ADT, or no such field");
    return -1;
  }
  *field = FieldForKernel(TupleOf(*value)->fields()[index]);
  return 0;
}

int AdtFields(const RewireFFIAny* value, std::int32_t begin, std::int32_t count, RewireFFIAny* fields) {
  const std::int32_t size = AdtSize(value);
  if (begin < 0 || count < 0 || begin > size || count > size - begin) {
    SetKernelError("IndexError", "adt_fields: no ADT, or no such fields");
    return -1;
  }
  const RewireFFIAny* from = TupleOf(*value)->fields() + begin;
  for (std::int32_t i = 0; i < count; ++i) fields[i] = FieldForKernel(from[i]);
  return 0;
}

// A function object: tvm-ffi's layout, followed by what it calls.
struct FunctionObject {
  RewireFFIFunctionObject function;
  void* state;
  RewirePackedFunction call;
  void (*deleter)(void* state);
};

int CallFunctionObject(void* handle, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* result) {
  const auto* object = static_cast<const FunctionObject*>(handle);
  return object->call(object->state, args, count, result);
}

void DeleteFunctionObject(void* self, int flags) {
  auto* object = static_cast<FunctionObject*>(self);
  if ((flags & kRewireFFIStrongGone) != 0 && object->deleter != nullptr) object->deleter(object->state);
  if ((flags & kRewireFFIWeakGone) != 0) delete object;
}

int NewFunction(void* state, RewirePackedFunction call, void (*deleter)(void*), RewireFFIAny* result) {
  auto* object = new (std::nothrow) FunctionObject{};
  if (object == nullptr) {
    if (deleter != nullptr) deleter(state);
    SetKernelError("MemoryError", "no memory for a function object");
    return -1;
  }
  object->function.header.combined_ref_count = kNewObjectCount;
  object->function.header.type_index = kRewireFFIFunction;
  object->function.header.deleter = DeleteFunctionObject;
  object->function.cell.safe_call = CallFunctionObject;
  object->state = state;
  object->call = call;
  object->deleter = deleter;
  *result = MakeAny(kRewireFFIFunction, object);
  return 0;
}

constexpr RewireBranchesApi kKernelApi = {
    {.struct_size = sizeof(RewireBranchesApi),
     .version = REWIRE_KERNEL_API_VERSION,
     .set_error = SetKernelError,
     .get_slot = GetSlot,
     .set_slot = SetSlot,
     .workspace = TakeWorkspace,
     .parallel_for = ParallelFor,
     .thread_count = ThreadCount,
     .stream = Stream,
     .cancelled = Cancelled,
     .new_tensor = NewTensor,
     .new_adt = NewAdt,
     .adt_size = AdtSize,
     .adt_tag = AdtTag,
     .adt_field = AdtField,
     .new_function = NewFunction,
     .adt_fields = AdtFields,
     .device = Device},
    RunBranches,
};

}  // namespace

const RewireKernelApi* KernelApi() { return &kKernelApi.kernel; }

}  // namespace rewire

// The variable of kernels that are linked into the same file as this code. The kernels' own definitions are
// weak.
REWIRE_KERNEL_EXPORT const RewireKernelApi* __rewire_kernel_api = &rewire::kKernelApi.kernel;

namespace rewire {

bool FreeWorkspace(void* block) {
  Machine* vm = KernelContext::Current();
  return vm != nullptr && GiveWorkspace(vm, block);
}

bool WritesArgument(std::uint32_t position, std::uint32_t count) {
  const Machine* vm = KernelContext::Current();
  if (vm == nullptr || vm->current_call == nullptr) return false;
  const std::uint32_t kernel = vm->current_call[WordOf(Opcode::kInvokePacked, "kernel")];
  const std::uint32_t outputs = vm->current_call[WordOf(Opcode::kInvokePacked, "outputs")];
  return IsWritten(*vm->rep.kernels[kernel].import, position, count - outputs);
}

}  // namespace rewire
