// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/programs/test_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

using kernel::TensorList;

std::string TypeText(kernel::TensorView tensor) {
  std::string text = kernel::DTypeName(tensor.dtype()) + "[";
  for (int i = 0; i < tensor.ndim(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(tensor.dim(i));
  return text + "]";
}

bool SameShape(kernel::TensorView a, kernel::TensorView b) {
  bool same = a.ndim() == b.ndim();
  for (int i = 0; same && i < a.ndim(); ++i) same = a.dim(i) == b.dim(i);
  return same;
}

kernel::Status ExpectEqual(kernel::TensorView a, kernel::TensorView b) {
  if (!kernel::SameDType(a.dtype(), b.dtype()) || !SameShape(a, b)) {
    return kernel::ValueError(TypeText(a) + " is not " + TypeText(b));
  }
  const auto bytes = static_cast<std::size_t>(a.size() * a.element_bytes());
  if (bytes == 0 || std::memcmp(a.raw_data(), b.raw_data(), bytes) == 0) return {};
  return kernel::ValueError("the elements of two " + TypeText(a) + " differ");
}

kernel::Status AddOne(kernel::TensorView x, kernel::TensorView out) {
  if (!kernel::SameDType(x.dtype(), kFloat32) || !kernel::SameDType(out.dtype(), kFloat32) ||
      !SameShape(x, out)) {
    return kernel::ValueError(TypeText(x) + " cannot go to " + TypeText(out));
  }
  for (std::int64_t i = 0; i < x.size(); ++i) out.data<float>()[i] = x.data<float>()[i] + 1;
  return {};
}

// Hands its argument back, with the strong reference that a result carries.
void Echo(const RewireFFIAny& x, RewireFFIAny* result) {
  if (x.type_index >= kRewireFFIObject) __atomic_fetch_add(&x.v_obj->combined_ref_count, 1, __ATOMIC_RELAXED);
  *result = x;
}

}  // namespace

KernelSet TestKernels() {
  KernelSet kernels;
  kernels.AddFunction("test.expect_equal", MakePackedFunction(ExpectEqual));
  kernels.AddFunction("test.add_one", MakePackedFunction(AddOne));
  kernels.AddFunction("test.count", MakePackedFunction([](TensorList tensors) { return tensors.size(); }));
  kernels.AddFunction("test.size", MakePackedFunction([](kernel::TensorView x) { return x.size(); }));
  kernels.AddFunction("test.seven", MakePackedFunction([] { return 7; }));
  kernels.AddFunction("test.echo", MakePackedFunction(Echo));
  kernels.AddFunction(
      "test.fail", MakePackedFunction([]() -> kernel::Status { return kernel::ValueError("told to fail"); }));
  return kernels;
}

}  // namespace rewire::test
