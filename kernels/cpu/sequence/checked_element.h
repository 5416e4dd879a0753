// SPDX-License-Identifier: Apache-2.0
//
// rewire.seq.checked: whether a kernel returned what its caller was told. For kernels of the host that make
// their outputs themselves, since what follows relies on dtype and shape.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewire/kernels/contract/sequence.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

struct CheckedElement {
  static constexpr const char* kName = names::kSeqChecked;

  DLDataType dtype{};
  std::string what;

  static Status Make(Attributes& attributes, CheckedElement* checked) {
    checked->what = attributes.String("what", "it");
    attributes.Require("dtype");
    const std::vector<std::int64_t> dtype = attributes.Ints("dtype", {});
    const auto fits = [&](std::size_t i, std::int64_t most) { return dtype[i] >= 0 && dtype[i] <= most; };
    if (attributes.Has("dtype") && (dtype.size() != 3 || !fits(0, 255) || !fits(1, 255) || !fits(2, 65535)))
      return ValueError("attribute 'dtype': expected code, bits and lanes");
    if (dtype.size() == 3) {
      checked->dtype = {static_cast<std::uint8_t>(dtype[0]), static_cast<std::uint8_t>(dtype[1]),
                        static_cast<std::uint16_t>(dtype[2])};
    }
    return Status();
  }

  Status operator()(const RewireFFIAny& element, std::optional<TensorView> dims, RewireFFIAny* result) const {
    if (dims) {
      if (Status s = Checks().Dense("dims", *dims).Rank("dims", *dims, 1).Take(); !s.ok()) return s;
      if (!dims->Is<std::int64_t>())
        return TypeError("dims has dtype ", DTypeName(dims->dtype()), ", expected i64");
    }
    const DLTensor* tensor = RewireTensorOf(&element);
    if (tensor == nullptr && element.type_index == kRewireFFIInt) {
      if (!SameDType(dtype, {kDLInt, 64, 1}) || (dims && dims->size() != 0)) return Wrong("an integer", dims);
      *result = element;
      return Status();
    }
    if (tensor == nullptr) return Wrong(TypeIndexName(element.type_index), dims);
    const TensorView view(tensor);
    if (!SameDType(view.dtype(), dtype) || (dims && !Fits(view.dims(), *dims)))
      return Wrong(DTypeName(view.dtype()) + DimsText(view.dims()), dims);
    // A result is owned; the argument stays the caller's.
    *result = element;
    if (element.type_index >= kRewireFFIObject)
      __atomic_fetch_add(&element.v_obj->combined_ref_count, 1, __ATOMIC_RELAXED);
    return Status();
  }

 private:
  static bool Fits(ShapeView given, TensorView dims) {
    if (dims.size() != static_cast<std::int64_t>(given.size())) return false;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::int64_t expected = dims.data<std::int64_t>()[i];
      if (expected >= 0 && expected != given[i]) return false;
    }
    return true;
  }
  static std::string DimsText(ShapeView dims) {
    std::string text = "[";
    for (const std::int64_t dim : dims)
      text += (text.size() == 1 ? "" : ", ") + (dim < 0 ? "?" : std::to_string(dim));
    return text + "]";
  }
  Status Wrong(const std::string& given, const std::optional<TensorView>& dims) const {
    const std::string expected =
        dims ? DimsText(ShapeView(dims->data<std::int64_t>(), static_cast<std::size_t>(dims->size())))
             : " of any shape";
    return TypeError(what, " is ", given, ", expected ", DTypeName(dtype), expected);
  }
};

}  // namespace rewire::kernel::cpu
