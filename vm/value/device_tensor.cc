// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/value/device_tensor.h"

#include <memory>

#include "rewire/base/likely.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/value.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

Result<Tensor> ImportHandle(const DeviceApi& api, const TensorView& view) {
  const DLTensor& dl = view.dl();
  void* address = nullptr;
  const int code =
      api.import_handle(api.context, dl.device, dl.data, dl.byte_offset + view.bytes(), &address);
  if (code != REWIRE_DEVICE_OK) return Forward(DeviceFailure(api, dl.device, code));
  const std::shared_ptr<const void> hold = OwnerOf(api, dl.device, Held::kHandle, address);
  if (address == dl.data) return Tensor();
  DLTensor there = dl;
  there.data = static_cast<char*>(address) + dl.byte_offset;
  there.byte_offset = 0;
  Result<Tensor> tensor = Tensor::Wrap(TensorView(there), hold);
  if (tensor) TensorOf(Value(*tensor).any())->storage->device_api = &api;
  return tensor;
}

}  // namespace

Result<Tensor> Imported(Span<const LinkedDevice> devices, const DLTensor& dl) {
  if (REWIRE_LIKELY(IsHostDevice(dl.device))) return Tensor();
  for (const LinkedDevice& linked : devices) {
    if (linked.api == nullptr || !HasHandles(*linked.api) || !IsSameDevice(linked.device, dl.device))
      continue;
    const TensorView view(dl);
    const bool sound = dl.data != nullptr && dl.ndim <= kMaxRank && IsValidDType(dl.dtype) &&
                       TensorBytes(dl.dtype, view.shape());
    return sound ? ImportHandle(*linked.api, view) : Tensor();
  }
  return Tensor();
}

Result<Tensor> CopyToHost(const Tensor& tensor) {
  const DLTensor& dl = tensor.dl();
  if (IsHostDevice(dl.device)) return tensor;
  const StorageObject* storage = TensorOf(Value(tensor).any())->storage;
  if (storage == nullptr || storage->device_api == nullptr) {
    return Fail(StatusCode::kInvalidArgument, "the tensor is on a device, in memory that no VM allocated");
  }
  Result<Tensor> copy = Tensor::Make(dl.dtype, tensor.shape());
  if (!copy) return copy;
  const DeviceApi& api = *storage->device_api;
  const void* from = static_cast<const char*>(dl.data) + dl.byte_offset;
  int code = api.copy(api.context, copy->dl().data, kHost, from, dl.device, tensor.view().bytes(), nullptr);
  if (code == REWIRE_DEVICE_OK) code = api.synchronize(api.context, dl.device, nullptr);
  if (code != REWIRE_DEVICE_OK) return Forward(DeviceFailure(api, dl.device, code));
  return copy;
}

}  // namespace rewire
