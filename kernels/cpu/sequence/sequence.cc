// SPDX-License-Identifier: Apache-2.0
//
// Sequences of tensors: ADTs with one field per element. These kernels take whole ADTs and make new ones; the
// tensors in them are shared.
#include <algorithm>
#include <optional>

#include "rewire/kernels/contract/sequence.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/sequence/checked_element.h"
#include "rewire/kernels/cpu/sequence/sequence.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {
namespace {

// A position in [-size, last] to [0, last]; without one, `otherwise`.
Status ReadPosition(const std::optional<TensorView>& position, std::int64_t size, std::int64_t last,
                    std::int64_t otherwise, std::size_t* at) {
  std::int64_t value = otherwise;
  if (position) {
    if (Status s = CheckDense("position", *position); !s.ok()) return s;
    if (position->size() != 1)
      return ValueError("position has shape ", position->dims(), ", expected one element");
    if (position->Is<std::int64_t>()) {
      value = *position->data<std::int64_t>();
    } else if (position->Is<std::int32_t>()) {
      value = *position->data<std::int32_t>();
    } else {
      return TypeError("position has dtype ", DTypeName(position->dtype()), ", expected one of i64, i32");
    }
  }
  if (value < -size || value > last)
    return ValueError("position is ", value, ", expected at least ", -size, " and at most ", last);
  *at = static_cast<std::size_t>(value < 0 ? value + size : value);
  return Status();
}

struct SequenceLength {
  static constexpr const char* kName = names::kSeqLength;
  Status operator()(const RewireFFIAny& seq, TensorView out) const {
    const std::int32_t size = __rewire_kernel_api->adt_size(&seq);
    if (size < 0) return TypeError("seq is ", TypeIndexName(seq.type_index), ", expected a sequence");
    if (Status s = Checks().Dense("out", out).Rank("out", out, 0).Take(); !s.ok()) return s;
    if (!out.Is<std::int64_t>()) return TypeError("out has dtype ", DTypeName(out.dtype()), ", expected i64");
    *out.data<std::int64_t>() = size;
    return Status();
  }
};

struct SequenceAt {
  static constexpr const char* kName = names::kSeqAt;
  Status operator()(const RewireFFIAny& seq, TensorView position, RewireFFIAny* result) const {
    const std::int32_t size = __rewire_kernel_api->adt_size(&seq);
    if (size < 0) return TypeError("seq is ", TypeIndexName(seq.type_index), ", expected a sequence");
    std::size_t at = 0;
    if (Status s = ReadPosition(position, size, size - 1, 0, &at); !s.ok()) return s;
    if (__rewire_kernel_api->adt_field(&seq, static_cast<std::int32_t>(at), result) != 0)
      return RuntimeError("no element ", at);
    // A result is owned; what the sequence holds stays its own.
    if (result->type_index >= kRewireFFIObject)
      __atomic_fetch_add(&result->v_obj->combined_ref_count, 1, __ATOMIC_RELAXED);
    return Status();
  }
};

struct SequenceInsert {
  static constexpr const char* kName = names::kSeqInsert;
  Status operator()(const RewireFFIAny& seq, const RewireFFIAny& element, std::optional<TensorView> position,
                    RewireFFIAny* result) const {
    std::span<RewireFFIAny> elements;
    if (Status s = ReadSequence(seq, 1, &elements); !s.ok()) return s;
    const auto size = static_cast<std::int64_t>(elements.size());
    std::size_t at = 0;
    if (Status s = ReadPosition(position, size, size, size, &at); !s.ok()) return s;
    RewireFFIAny* place = elements.data() + at;
    std::copy_backward(place, elements.data() + size, elements.data() + size + 1);
    *place = element;
    return MakeSequence({elements.data(), elements.size() + 1}, result);
  }
  // How many elements there are is no shape.
  bool DeclareWorkspace(WorkspaceSizes&) const { return false; }
};

struct SequenceErase {
  static constexpr const char* kName = names::kSeqErase;
  Status operator()(const RewireFFIAny& seq, std::optional<TensorView> position, RewireFFIAny* result) const {
    std::span<RewireFFIAny> elements;
    if (Status s = ReadSequence(seq, 0, &elements); !s.ok()) return s;
    const auto size = static_cast<std::int64_t>(elements.size());
    std::size_t at = 0;
    if (Status s = ReadPosition(position, size, size - 1, size - 1, &at); !s.ok()) return s;
    RewireFFIAny* place = elements.data() + at;
    std::copy(place + 1, elements.data() + size, place);
    return MakeSequence(elements.first(elements.size() - 1), result);
  }
  // How many elements there are is no shape.
  bool DeclareWorkspace(WorkspaceSizes&) const { return false; }
};

}  // namespace

std::span<const Kernel> SequenceElementKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<SequenceLength>("seq -> out", "out i64", "", "the number of elements, out of rank 0",
                               kObjects),
      Describe<SequenceAt>("seq, position", "position i64 i32", "",
                           "returns the element at the position; negative ones count from the end", kObjects),
      Describe<SequenceInsert>("seq, element, position?", "position i64 i32", "",
                               "returns the sequence with an element more, at the position or the end",
                               kObjects),
      Describe<SequenceErase>("seq, position?", "position i64 i32", "",
                              "returns the sequence without the element at the position or the end",
                              kObjects),
      Describe<CheckedElement>(
          "element, dims?", "dims i64", "dtype, what = it",
          "returns the element if it is a tensor of the dtype (code, bits and lanes) and "
          "of the shape, where -1 stands for any size and no dims for any shape; an error "
          "names `what`",
          kObjects),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
