// SPDX-License-Identifier: Apache-2.0
//
// The environment of a kernel: streams, tensors, cancellation, and functions that code compiled by TVM calls
// back. Inside a kernel that a VM runs, they belong to that VM.
#include <atomic>
#include <map>
#include <utility>

#include "rewire/vm/kernel/dlpack_versioned.h"
#include "rewire/vm/loader/ffi_shim/runtime.h"

namespace rewire::ffi_shim {
namespace {

thread_local std::map<std::pair<std::int32_t, std::int32_t>, void*>
    t_streams;  // set by the host; else the VM's

// DLPack's allocator function: reports through `set_error` when it returns non-zero.
using TensorAllocator = int (*)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_context,
                                void (*set_error)(void* error_context, const char* kind,
                                                  const char* message));
thread_local TensorAllocator t_allocator = nullptr;
std::atomic<TensorAllocator> g_allocator{nullptr};

// A function that the VM provides under this name.
template <typename F>
F Backend(const char* name) {
  return reinterpret_cast<F>(Host()->backend_function(name));
}

int NotInVm(const char* what) {
  return Raise("RuntimeError", std::string(what) + " is available only inside a kernel that a VM runs");
}

}  // namespace

REWIRE_FFI_API int TVMFFIEnvSetStream(std::int32_t device_type, std::int32_t device_id, void* stream,
                                      void** before) {
  if (before != nullptr) *before = nullptr;
  const auto [entry, is_new] = t_streams.try_emplace({device_type, device_id}, stream);
  if (is_new) return 0;
  if (before != nullptr) *before = entry->second;
  entry->second = stream;
  return 0;
}

REWIRE_FFI_API void* TVMFFIEnvGetStream(std::int32_t device_type, std::int32_t device_id) {
  if (const auto set = t_streams.find({device_type, device_id}); set != t_streams.end()) return set->second;
  return Host() != nullptr ? Host()->api->stream(device_type, device_id) : nullptr;
}

REWIRE_FFI_API int TVMFFIEnvSetDLPackManagedTensorAllocator(TensorAllocator allocator, int for_all_threads,
                                                            TensorAllocator* before) {
  if (before != nullptr) *before = t_allocator;
  t_allocator = allocator;
  if (for_all_threads != 0) g_allocator = allocator;
  return 0;
}

REWIRE_FFI_API TensorAllocator TVMFFIEnvGetDLPackManagedTensorAllocator() {
  return t_allocator != nullptr ? t_allocator : g_allocator.load();
}

REWIRE_FFI_API int TVMFFITensorFromDLPackVersioned(DLManagedTensorVersioned* from, std::int32_t alignment,
                                                   std::int32_t require_contiguous, void** out);

REWIRE_FFI_API int TVMFFIEnvTensorAlloc(DLTensor* prototype, void** out) {
  if (const TensorAllocator allocator = TVMFFIEnvGetDLPackManagedTensorAllocator(); allocator != nullptr) {
    DLManagedTensorVersioned* managed = nullptr;
    const int status = allocator(prototype, &managed, nullptr,
                                 [](void*, const char* kind, const char* message) { Raise(kind, message); });
    return status != 0 ? -1 : TVMFFITensorFromDLPackVersioned(managed, 0, 0, out);
  }
  if (Host() == nullptr) return NotInVm("TVMFFIEnvTensorAlloc");
  RewireFFIAny result{};
  if (Host()->api->new_tensor(prototype->dtype, prototype->ndim, prototype->shape, prototype->device,
                              &result) != 0) {
    return RaiseHostError();
  }
  *out = result.v_obj;
  return 0;
}

REWIRE_FFI_API int TVMFFIEnvCheckSignals() {
  if (Host() == nullptr || Host()->api->cancelled() == 0) return 0;
  return Raise("KeyboardInterrupt", "the run was cancelled");
}

REWIRE_FFI_API int TVMFFIEnvModLookupFromImports(void* library, const char* name, void** out) {
  if (Host() == nullptr) return NotInVm("TVMFFIEnvModLookupFromImports");
  const auto look_up = Backend<int (*)(void*, const char*, void**)>("TVMFFIEnvModLookupFromImports");
  return look_up(library, name, out) == 0 ? 0 : RaiseHostError();
}

REWIRE_FFI_API int TVMBackendGetFuncFromEnv(void* library, const char* name, void** out) {
  return TVMFFIEnvModLookupFromImports(library, name, out);
}

REWIRE_FFI_API void* TVMBackendAllocWorkspace(int device_type, int device_id, std::uint64_t bytes,
                                              int code_hint, int bits_hint) {
  if (Host() == nullptr) {
    NotInVm("TVMBackendAllocWorkspace");
    return nullptr;
  }
  const auto allocate = Backend<void* (*)(int, int, std::uint64_t, int, int)>("TVMBackendAllocWorkspace");
  void* memory = allocate(device_type, device_id, bytes, code_hint, bits_hint);
  if (memory == nullptr) RaiseHostError();
  return memory;
}

REWIRE_FFI_API int TVMBackendFreeWorkspace(int device_type, int device_id, void* memory) {
  if (Host() == nullptr) return NotInVm("TVMBackendFreeWorkspace");
  return Backend<int (*)(int, int, void*)>("TVMBackendFreeWorkspace")(device_type, device_id, memory);
}

REWIRE_FFI_API int TVMBackendParallelLaunch(int (*task)(int, void*, void*), void* data, int num_task) {
  if (Host() == nullptr) return NotInVm("TVMBackendParallelLaunch");
  using Task = int (*)(int, void*, void*);
  return Backend<int (*)(Task, void*, int)>("TVMBackendParallelLaunch")(task, data, num_task);
}

REWIRE_FFI_API int TVMBackendParallelBarrier(int task_id, void* group) {
  if (Host() == nullptr) return NotInVm("TVMBackendParallelBarrier");
  return Backend<int (*)(int, void*)>("TVMBackendParallelBarrier")(task_id, group);
}

// The classic ABI's, for libraries that TVM's C source target made: they name them instead of having a
// variable.
REWIRE_FFI_API void TVMAPISetLastError(const char* message) {
  if (Host() != nullptr) Backend<void (*)(const char*)>("TVMAPISetLastError")(message);
}

// A library built for a program that links it (`system-lib`) offers its functions so when it is loaded. They
// are found by their exported names, as those of any other library.
REWIRE_FFI_API int TVMBackendRegisterSystemLibSymbol(const char* /*name*/, void* /*symbol*/) { return 0; }

REWIRE_FFI_API int TVMFuncCall(void* function, void* args, int* codes, int num_args, void* result,
                               int* result_code) {
  if (Host() == nullptr) return NotInVm("TVMFuncCall");
  using Call = int (*)(void*, void*, int*, int, void*, int*);
  return Backend<Call>("TVMFuncCall")(function, args, codes, num_args, result, result_code);
}

}  // namespace rewire::ffi_shim
