// SPDX-License-Identifier: Apache-2.0
// The environment of kernels in the tvm-ffi runtime that Rewire brings, outside a VM. Inside one it has tests
// with real kernels: ffi_library_test.cc and tests/devices/kernel_stream_test.cc.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <thread>

#include "rewire/tests/vm/loader/ffi_shim/shim_runtime.h"
#include "rewire/vm/kernel/dlpack_versioned.h"

namespace rewire::test {
namespace {

using SetError = void (*)(void* context, const char* kind, const char* message);
using Allocator = int (*)(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                          SetError set_error);

TEST_CASE("a stream that is set is the thread's own until it is set again") {
  const ShimRuntime runtime;
  const auto set = runtime.Get<int(std::int32_t, std::int32_t, void*, void**)>("TVMFFIEnvSetStream");
  const auto get = runtime.Get<void*(std::int32_t, std::int32_t)>("TVMFFIEnvGetStream");
  int one = 0, two = 0;
  void* before = &one;
  REQUIRE(set(kDLCUDA, 3, &one, &before) == 0);
  CHECK(before == nullptr);
  CHECK(get(kDLCUDA, 3) == &one);
  CHECK(get(kDLCUDA, 4) != &one);
  void* seen = &one;
  std::thread([&] { seen = get(kDLCUDA, 3); }).join();
  CHECK(seen != &one);
  REQUIRE(set(kDLCUDA, 3, &two, &before) == 0);
  CHECK(before == &one);
  CHECK(get(kDLCUDA, 3) == &two);
  CHECK(set(kDLCUDA, 3, nullptr, nullptr) == 0);
  CHECK(get(kDLCUDA, 3) == nullptr);
}

int Refuse(DLTensor* /*prototype*/, DLManagedTensorVersioned** /*out*/, void* context, SetError set_error) {
  set_error(context, "MemoryError", "no tensor today");
  return -1;
}

int g_given = 0, g_deleted = 0;

int Give(DLTensor* prototype, DLManagedTensorVersioned** out, void* /*context*/, SetError /*set_error*/) {
  auto* const made = new DLManagedTensorVersioned{};
  made->version = {kDLPackMajor, 0};
  made->dl_tensor = *prototype;
  made->deleter = [](DLManagedTensorVersioned* self) {
    ++g_deleted;
    delete self;
  };
  ++g_given;
  *out = made;
  return 0;
}

TEST_CASE(
    "tensors come from the allocator of the thread, else from that of all, and its failure is the error") {
  const ShimRuntime runtime;
  const auto set = runtime.Get<int(Allocator, int, Allocator*)>("TVMFFIEnvSetDLPackManagedTensorAllocator");
  const auto get = runtime.Get<Allocator()>("TVMFFIEnvGetDLPackManagedTensorAllocator");
  const auto allocate = runtime.Get<int(DLTensor*, void**)>("TVMFFIEnvTensorAlloc");
  const auto release = runtime.Get<int(void*)>("TVMFFIObjectDecRef");
  float data[2] = {1, 2};
  std::int64_t shape[1] = {2};
  DLTensor prototype = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  void* tensor = nullptr;
  Allocator before = &Refuse;
  REQUIRE(set(&Give, 1, &before) == 0);
  CHECK(before == nullptr);
  Allocator elsewhere = nullptr;
  std::thread([&] { elsewhere = get(); }).join();
  CHECK(elsewhere == &Give);
  REQUIRE(allocate(&prototype, &tensor) == 0);
  CHECK(g_given == 1);
  REQUIRE(release(tensor) == 0);
  CHECK(g_deleted == 1);
  REQUIRE(set(&Refuse, 0, &before) == 0);
  CHECK(before == &Give);
  std::thread([&] { elsewhere = get(); }).join();
  CHECK(elsewhere == &Give);  // that of this thread alone is another one
  CHECK(allocate(&prototype, &tensor) == -1);
  CHECK(runtime.TakeError() == "MemoryError: no tensor today");
  REQUIRE(set(nullptr, 1, nullptr) == 0);
  CHECK(get() == nullptr);
}

TEST_CASE("outside a run nothing is cancelled, and what a library offers by itself is found by its name") {
  const ShimRuntime runtime;
  CHECK(runtime.Get<int()>("TVMFFIEnvCheckSignals")() == 0);
  CHECK(runtime.Get<int(const char*, void*)>("TVMBackendRegisterSystemLibSymbol")("name", nullptr) == 0);
}

}  // namespace
}  // namespace rewire::test
