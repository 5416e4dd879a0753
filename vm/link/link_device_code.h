// SPDX-License-Identifier: Apache-2.0
//
// Makes packed functions of the kernels that an executable itself holds for devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/base/work_meter.h"
#include "rewire/vm/device/loaded_module.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire {

// Device code runs only if the host allows it. Errors: kLinkFailed; kUnsupported in builds without dlopen,
// which run no device code.
Status AllowDeviceCode(const Module& module, const LinkOptions& options);

// Serves the linking of one executable, whose devices have been resolved. The host has allowed its device
// code. Both arguments outlive this.
class DeviceCodeLinker {
 public:
  DeviceCodeLinker(const LinkedCode& code, WorkMeter* meter) : code_(code), meter_(meter) {}

  // Null if the executable has no device kernel of this name. Looks at all of them.
  const DeviceKernelEntry* Find(std::string_view name) const;

  // Loads the best blob that the device takes, unless an earlier kernel did, and finds the kernel in it. The
  // result keeps what it needs. It gives each launch to the stream of the VM that runs.
  //
  // Errors: kLinkFailed with the device, the forms that the file has, and what the driver says of each that
  // was tried; kOutOfMemory; kMemoryLimit.
  Result<PackedFunction> Make(const DeviceKernelEntry& kernel, const KernelImport& import);

 private:
  struct Loaded {
    std::string_view name;  // of the blobs
    std::uint32_t device;   // index in the device table
    std::shared_ptr<const LoadedModule> module;
  };
  Result<std::shared_ptr<const LoadedModule>> Load(std::string_view name, std::uint32_t device);
  Result<std::shared_ptr<const LoadedModule>> LoadBlob(const DeviceCodeEntry& entry,
                                                       const LinkedDevice& device);

  const LinkedCode& code_;
  WorkMeter* meter_;
  Array<Loaded> loaded_;
};

// How well a blob fits a device, whose properties may be unknown (zeros). 0: not at all. A device's driver
// may still refuse a blob; then the next best is tried.
std::uint32_t FitOfDeviceCode(const DeviceCodeEntry& entry, const RewireDeviceProperties& device);

}  // namespace rewire
