// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/memory_bound/bounded_program.h"

#include <catch2/catch.hpp>

#include "rewire/base/array.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/kernel/ffi_abi.h"

namespace rewire::test {
namespace {

int Add(void*, const RewireFFIAny* args, std::int32_t count, RewireFFIAny*) {
  const DLTensor* a = RewireTensorOf(&args[0]);
  const DLTensor* b = RewireTensorOf(&args[count - 2]);
  DLTensor* out = RewireTensorOf(&args[count - 1]);
  std::int64_t elements = 1;
  for (std::int32_t i = 0; i < out->ndim; ++i) elements *= out->shape[i];
  for (std::int64_t i = 0; i < elements; ++i) {
    static_cast<float*>(out->data)[i] =
        static_cast<const float*>(a->data)[i] + static_cast<const float*>(b->data)[i];
  }
  return 0;
}

}  // namespace

LinkOptions Kernels() {
  LinkOptions options;
  PackedFunction add = Packed(Add);
  add.workspace = [](void*, const DLTensor* const*, std::int32_t, std::uint64_t*) { return 0; };
  options.kernels.AddFunction("host.add", add);
  return options;
}

MemoryBound BoundOf(const Program& program, bool outputs_bound,
                    Array<std::pair<std::string, std::int64_t>> dims) {
  Result<MemoryBound> bound = program.TryMemoryBound({}, {outputs_bound, std::move(dims)});
  if (!bound) FAIL(bound.error().message());
  return *std::move(bound);
}

std::unique_ptr<void, Freed> Block(std::uint64_t bytes) {
  return std::unique_ptr<void, Freed>(std::aligned_alloc(128, (bytes + 127) / 128 * 128));
}

}  // namespace rewire::test
