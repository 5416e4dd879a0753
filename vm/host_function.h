// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/host_function.h>.
//
// MakePackedFunction: makes a kernel from a C++ callable of the host process.
//
//   kernels.AddFunction("mine.scale", rewire::MakePackedFunction(
//       [factor](rewire::kernel::TensorView x, rewire::kernel::TensorView out) -> rewire::kernel::Status {
//         ...
//       }));
//
// vm/kernel/packed.h lists the parameter and result types that a callable may have. The arguments of each
// call are checked against them.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "rewire/vm/kernel/packed.h"
#include "rewire/vm/packed_function.h"

namespace rewire {
namespace internal {

struct HostErrors {
  static void Set(const char* kind, const char* message) { SetKernelError(kind, message); }
};

template <typename F>
int CallHostFunction(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  return kernel::CallPacked<HostErrors>(nullptr, *static_cast<const F*>(handle), args, num_args, result);
}

}  // namespace internal

// The callable lives until the last copy of the PackedFunction is gone. It is called as const, from several
// threads at once. Exceptions that it throws become errors.
template <typename Callable>
PackedFunction MakePackedFunction(Callable&& callable) {
  using F = std::decay_t<Callable>;
  auto owner = std::make_shared<F>(std::forward<Callable>(callable));
  PackedFunction function;
  function.call = &internal::CallHostFunction<F>;
  function.handle = owner.get();
  function.owner = std::move(owner);
  return function;
}

}  // namespace rewire
