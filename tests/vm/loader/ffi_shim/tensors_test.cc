// SPDX-License-Identifier: Apache-2.0
// The runtime of tvm-ffi that Rewire brings reads nothing but the version of a DLPack tensor that another
// major version has made.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>

#include "rewire/tests/vm/loader/ffi_shim/shim_runtime.h"
#include "rewire/vm/kernel/dlpack_versioned.h"

namespace rewire {
namespace {

// The fields that all versions have.
struct Start {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
};

TEST_CASE("a DLPack tensor of another major version is refused before anything of it is read") {
  const test::ShimRuntime runtime;
  using Import = int(void* from, std::int32_t alignment, std::int32_t contiguous, void** out);
  const auto import = runtime.Get<Import>("TVMFFITensorFromDLPackVersioned");
  const auto release = runtime.Get<int(void*)>("TVMFFIObjectDecRef");
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
}

}  // namespace
}  // namespace rewire
