// SPDX-License-Identifier: Apache-2.0
//
// A module of device code on one device, and its kernels.
#pragma once

#include <cstdint>
#include <memory>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/kernel/device_api.h"

namespace rewire {

// Unloads the module when it is destroyed. Several threads may call Find at once.
class LoadedModule {
 public:
  // Gives the code to the driver, which compiles source text. Compiled code is kept in the folder that the
  // environment variable REWIRE_DEVICE_CACHE names, if there is one. Errors: kUnsupported if the device takes
  // no code; what the driver says.
  static Result<std::shared_ptr<const LoadedModule>> Load(const DeviceApi& api, DLDevice device,
                                                          std::uint32_t form, Span<const std::byte> code);
  ~LoadedModule() { api_.unload_module(api_.context, device_, module_); }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  bool IsOn(const DeviceApi& api, DLDevice device) const {
    return &api_ == &api && device_.device_id == device.device_id;
  }
  // The driver's kernel, which lives as long as this object. Errors: what the driver says.
  Result<void*> Find(const char* name) const;

 private:
  LoadedModule(const DeviceApi& api, DLDevice device, void* module)
      : api_(api), device_(device), module_(module) {}

  const DeviceApi& api_;
  DLDevice device_;
  void* module_;
};

}  // namespace rewire
