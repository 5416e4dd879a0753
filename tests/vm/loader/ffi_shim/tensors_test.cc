// SPDX-License-Identifier: Apache-2.0
// The runtime of tvm-ffi that Rewire brings reads nothing but the version of a DLPack tensor that another
// major version has made.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>

#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/kernel/dlpack_versioned.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

// The fields that all versions have.
struct Start {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
};

TEST_CASE("a DLPack tensor of another major version is refused before anything of it is read") {
  KernelSet kernels;  // opens the runtime
  REQUIRE(kernels.AddLibrary(test::TestLibrary("linked")));
  void* const runtime = dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(runtime != nullptr);
  using Import = int (*)(void* from, std::int32_t alignment, std::int32_t contiguous, void** out);
  const auto import = reinterpret_cast<Import>(dlsym(runtime, "TVMFFITensorFromDLPackVersioned"));
  const auto release = reinterpret_cast<int (*)(void*)>(dlsym(runtime, "TVMFFIObjectDecRef"));
  REQUIRE(import != nullptr);
  REQUIRE(release != nullptr);
  static int deleted = 0;
  const auto deleter = [](DLManagedTensorVersioned*) { ++deleted; };
  for (const std::uint32_t major : {0U, 2U, 0xFFFFFFFFU}) {
    auto start = std::make_unique<Start>();  // a sanitizer sees reads behind it
    *start = {{major, 3}, nullptr, deleter};
    void* out = nullptr;
    CHECK(import(start.get(), 0, 0, &out) == -1);
    CHECK(out == nullptr);
  }
  CHECK(deleted == 0);  // it stays the caller's
  float data[2] = {1, 2};
  std::int64_t shape[1] = {2};
  DLManagedTensorVersioned tensor{};
  tensor.version = {kDLPackMajor, 9};
  tensor.deleter = deleter;
  tensor.dl_tensor = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  void* out = nullptr;
  REQUIRE(import(&tensor, 0, 0, &out) == 0);
  REQUIRE(release(out) == 0);
  CHECK(deleted == 1);
  dlclose(runtime);
}

}  // namespace
}  // namespace rewire
