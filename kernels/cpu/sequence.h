// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors as kernels see them: ADTs with one field an element.
#pragma once

#include <span>
#include <vector>

#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {

std::span<const Kernel> SequenceElementKernels();
std::span<const Kernel> SequenceJoinKernels();

struct Sequence {
  std::vector<RewireFFIAny> elements;  // borrowed
};

inline Status ReadSequence(const RewireFFIAny& value, Sequence* sequence) {
  const std::int32_t size = __rewire_kernel_api->adt_size(&value);
  if (size < 0) return TypeError("seq is ", TypeIndexName(value.type_index), ", expected a sequence");
  sequence->elements.resize(static_cast<std::size_t>(size));
  for (std::int32_t i = 0; i < size; ++i) {
    if (__rewire_kernel_api->adt_field(&value, i, &sequence->elements[static_cast<std::size_t>(i)]) != 0)
      return RuntimeError("no element ", i);
  }
  return Status();
}

// Elements are borrowed; the sequence refers to them.
inline Status MakeSequence(const std::vector<RewireFFIAny>& elements, RewireFFIAny* result) {
  const auto size = static_cast<std::int32_t>(elements.size());
  if (__rewire_kernel_api->new_adt(0, size, elements.data(), result) != 0) return Status::AlreadySet();
  return Status();
}

}  // namespace rewire::kernel::cpu
