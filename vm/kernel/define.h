// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/define.h>.
//
// Defines kernels as C++ classes, and the table of a kernel library. C++17.
//
//   struct Scale {
//     static constexpr const char kName[] = "mine.scale";
//     double factor = 1;
//     static Status Make(Attributes& attributes, Scale* scale) {   // only in kernels that have attributes
//       scale->factor = attributes.Float("factor", 1);
//       return Status();
//     }
//     Status operator()(TensorView x, TensorView out) const;       // parameter types: see packed.h
//   };
//
//   REWIRE_KERNEL_LIBRARY;
//   static const RewireKernelEntry kEntries[] = {rewire::kernel::Entry<Scale>()};
//   extern "C" REWIRE_KERNEL_EXPORT const RewireKernelTable __rewire_kernel_table =
//   rewire::kernel::Table(kEntries);
//
// A class without Make has no state and is constructed for each call. A class with Make is the state of a
// function object. It is made once, when a program is linked, and many threads then read it.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "rewire/vm/kernel/attributes.h"
#include "rewire/vm/kernel/function_object.h"
#include "rewire/vm/kernel/packed.h"

namespace rewire::kernel {
namespace internal {

template <typename Kernel, typename = void>
inline constexpr bool kHasMake = false;
template <typename Kernel>
inline constexpr bool kHasMake<Kernel, std::void_t<decltype(&Kernel::Make)>> = true;

template <typename Kernel, typename Errors>
int CallKernel(void* /*handle*/, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  const Kernel kernel{};
  return CallPacked<Errors>(Kernel::kName, kernel, args, num_args, result);
}

template <typename Kernel, typename Errors>
int MakeKernel(void* /*handle*/, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  return Guard<Errors>(Kernel::kName, [&]() -> Status {
    Attributes attributes(args, num_args);
    Kernel kernel{};
    Status made = Kernel::Make(attributes, &kernel);
    Status read = attributes.Finish();
    if (!read.ok()) return read;  // reported first, because it may have caused the error of Make
    if (!made.ok()) return made;
    const bool created = FunctionObject<Kernel, Errors>::New(Kernel::kName, std::move(kernel), result);
    return created ? Status() : RuntimeError("out of memory");
  });
}

}  // namespace internal

// Makes the table entry of a kernel class.
template <typename Kernel, typename Errors = ApiErrors>
constexpr RewireKernelEntry Entry() {
  if constexpr (internal::kHasMake<Kernel>) {
    return RewireKernelEntry{Kernel::kName, &internal::MakeKernel<Kernel, Errors>, 1};
  } else {
    static_assert(std::is_empty_v<Kernel>, "a kernel with state needs Make");
    return RewireKernelEntry{Kernel::kName, &internal::CallKernel<Kernel, Errors>, 0};
  }
}

// Makes the table of an array of entries, which it refers to. The table has no rows (row.h).
template <std::size_t kCount>
constexpr RewireKernelTable Table(const RewireKernelEntry (&entries)[kCount]) {
  return RewireKernelTable{sizeof(RewireKernelTable), static_cast<std::uint32_t>(kCount), entries, nullptr};
}

}  // namespace rewire::kernel
