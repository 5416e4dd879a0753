// SPDX-License-Identifier: Apache-2.0
// Packed functions out of C++ callables of the host process.
//
//   kernels.AddFunction("mine.scale", rewire::MakePackedFunction(
//       [factor](rewire::kernel::TensorView x, rewire::kernel::TensorView out) -> rewire::kernel::Status {
//         ...
//       }));
//
// vm/kernel/packed.h lists the parameters and results that a callable may have, and checks arguments against
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "vm/kernel/packed.h"
#include "vm/packed_function.h"

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

// Keeps the callable until the last PackedFunction made from this one goes. It is called as const, on many
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
