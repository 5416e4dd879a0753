// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_runtime/arguments.h"

#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/loader/tvm_runtime/host.h"

namespace rewire::tvm_runtime {
namespace {

bool HasNoGaps(const DLTensor& tensor) {
  std::int64_t expected = 1;
  for (std::int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.strides != nullptr && tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

}  // namespace

int Fail(const Message& message) {
  g_host->set_error(message.Text().c_str());
  return -1;
}

int CheckCancelled() { return g_host->kernels->cancelled() != 0 ? Fail("the run was cancelled") : 0; }

const DLTensor* Arguments::TensorAt(int i) {
  if (i >= count_ || (codes_[i] != kClassicDLTensor && codes_[i] != kClassicNDArray)) {
    return Refuse(i, "a tensor");
  }
  const auto* tensor = static_cast<const DLTensor*>(values_[i].v_handle);
  if (!IsHostDevice(tensor->device) || tensor->dtype.lanes != 1 || !HasNoGaps(*tensor)) {
    return Refuse(i, "a tensor of the host without gaps");
  }
  return tensor;
}

std::int64_t Arguments::IntegerAt(int i) {
  const bool integer =
      i < count_ && (codes_[i] == kClassicInt || codes_[i] == kClassicUInt || codes_[i] == kClassicBool);
  if (!integer) Refuse(i, "an integer");
  return integer ? values_[i].v_int64 : 0;
}

std::string_view Arguments::TextAt(int i) {
  const bool text = i < count_ && codes_[i] == kClassicStr;
  if (!text) Refuse(i, "a string");
  return text ? std::string_view(values_[i].v_str) : std::string_view();
}

std::nullptr_t Arguments::Refuse(int i, const char* expected) {
  if (error_.empty()) error_ = Format("{}: argument {} is not {}", function_, i, expected);
  return nullptr;
}

}  // namespace rewire::tvm_runtime
