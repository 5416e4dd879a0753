// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/link_devices.h"

#include <tuple>

#include "rewire/base/array.h"
#include "rewire/base/sort.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/link/error_list.h"
#include "rewire/vm/loader/device_library.h"

namespace rewire {
namespace {

// Finds the functions of a device. The words for what is missing, or the empty text where there is no more to
// say than that the device is.
Status FindDevice(const LinkOptions& options, LinkedDevice* device) {
  for (const DeviceApi* api : options.devices) {
    if (api->device_type == DeviceTypeOf(device->device)) device->api = api;
  }
  const char* stock = StockDeviceName(DeviceTypeOf(device->device));
  if (device->api == nullptr && options.stock_devices && stock != nullptr) {
    const Result<const DeviceApi*> opened = OpenDevice(stock);
    if (!opened) return Forward(opened);
    device->api = *opened;
  }
  if (device->api == nullptr) return Fail(StatusCode::kNotFound, "no library for it was given");
  const DeviceApi& api = *device->api;
  if (api.count == nullptr) return {};
  std::int32_t count = 0;
  const int code = api.count(api.context, &count);
  if (code != REWIRE_DEVICE_OK) return DeviceFailure(api, device->device, code);
  const std::int32_t id = device->device.device_id;
  if (id >= 0 && id < count) return {};
  return Fail(StatusCode::kNotFound, "there are {} devices of this kind, numbered from 0", count);
}

}  // namespace

Status LinkDevices(LinkedCode* code, const LinkOptions& options, WorkMeter* meter) {
  const Array<DeviceEntry>& entries = code->module().devices;
  if (Status ok = meter->Charge(entries.size() * (2 + options.devices.size())); !ok) return ok;
  Array<std::uint32_t> order;  // entries of one device stand together
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    LinkedDevice device;
    device.device = MakeDevice(entries[i].type, entries[i].id);
    device.scope = entries[i].memory_scope.c_str();
    code->devices.push_back(device);
    order.push_back(i);
  }
  Sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t i) { return std::make_tuple(entries[i].type, entries[i].id, i); };
    return key(a) < key(b);
  });
  ErrorList errors;
  std::uint32_t streams = 0;
  for (std::uint32_t i = 0; i < order.size() && !errors.full(); ++i) {
    LinkedDevice& device = code->devices[order[i]];
    const LinkedDevice* before = i == 0 ? nullptr : &code->devices[order[i - 1]];
    if (before != nullptr && IsSameDevice(before->device, device.device)) {
      // Entries for one device differ in the scope of their memory; they share a stream.
      device.api = before->api;
      device.stream = before->stream;
    } else if (!IsHostDevice(device.device)) {
      device.stream = streams++;
      const Status found = FindDevice(options, &device);
      if (!found) errors.Add({"{}: {}", DeviceText(entries[order[i]]), found.error().message()});
    }
  }
  return errors.ToStatus("the executable uses devices that are not there:");
}

}  // namespace rewire
