// SPDX-License-Identifier: Apache-2.0
//
// Sequences of tensors as kernels see them: ADTs (tagged tuples) with one field per element.
#pragma once

#include <algorithm>
#include <span>

#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

// Returns the elements of a sequence, borrowed, in the running kernel's workspace. There is room for `more`
// behind them.
inline Status ReadSequence(const RewireFFIAny& value, std::int32_t more, std::span<RewireFFIAny>* elements) {
  const std::int32_t size = __rewire_kernel_api->adt_size(&value);
  if (size < 0) return TypeError("seq is ", TypeIndexName(value.type_index), ", expected a sequence");
  RewireFFIAny* fields = nullptr;
  if (Status s = Workspace(std::max<std::int64_t>(1, std::int64_t{size} + more), &fields); !s.ok()) return s;
  *elements = {fields, static_cast<std::size_t>(size)};
  Pace pace;
  for (std::int32_t i = 0; i < size;) {
    const auto count = static_cast<std::int32_t>(std::min<std::int64_t>(kPace, size - i));
    if (!pace.Spend(count)) return Stopped();
    if (__rewire_kernel_api->adt_fields(&value, i, count, fields + i) != 0) return Status::AlreadySet();
    i += count;
  }
  return Status();
}

// Elements are borrowed; the sequence refers to them.
inline Status MakeSequence(std::span<const RewireFFIAny> elements, RewireFFIAny* result) {
  const auto size = static_cast<std::int32_t>(elements.size());
  if (__rewire_kernel_api->new_adt(0, size, elements.data(), result) != 0) return Status::AlreadySet();
  return Status();
}

}  // namespace rewire::kernel::cpu
