// SPDX-License-Identifier: Apache-2.0
//
// Device code of a kernel library: kernels that the library's host code launches by name, on the stream of
// the VM that runs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/import/device_module.h"
#include "rewire/vm/device/loaded_module.h"
#include "rewire/vm/kernel/device_api.h"

namespace rewire {

// Chooses the device on which the calling thread launches kernels next, by DLDeviceType and number. Host code
// does so before each launch. At first it is number 0 of each type.
void ChooseLaunchDevice(std::int32_t device_type, std::int32_t device_id);

// One module. The driver compiles it when a kernel of it is first launched on a device, and once for each
// device. Safe on threads.
class DeviceCode {
 public:
  struct Kernel;

  // Copies what it needs. Errors: kUnsupported, with the name, for code or launch tags that are not known.
  static Result<std::unique_ptr<DeviceCode>> Make(const tvm::DeviceModule& module);
  ~DeviceCode();
  DeviceCode(const DeviceCode&) = delete;
  DeviceCode& operator=(const DeviceCode&) = delete;

  const std::string& kind() const { return kind_; }
  // Null if there is no kernel of this name. It lives as long as this object.
  const Kernel* Find(std::string_view name) const;

  // In the order of the module.
  Array<std::string> Names() const;

  static constexpr std::int32_t kMostArguments = 64;

  // Gives one launch to the stream. A value is an integer of 64 bits, a double or an address, by what the
  // kernel takes there, as both ABIs of TVM pass them. May be called on the thread of a kernel that a VM
  // runs. Returns 0, or -1 with the kernel's error set.
  static int Launch(const Kernel& kernel, const std::uint64_t* values, std::int32_t count);

 private:
  DeviceCode() = default;
  Status AddKernel(const tvm::DeviceKernel& source);
  // With the mutex held.
  Result<std::shared_ptr<const LoadedModule>> LoadOn(const DeviceApi& api, DLDevice device);
  Result<void*> KernelOn(const Kernel& kernel, const DeviceApi& api, DLDevice device);

  std::string kind_;
  std::string code_;
  std::int32_t device_type_ = 0;
  std::uint32_t form_ = 0;  // RewireDeviceCode
  Array<std::unique_ptr<Kernel>> kernels_;
  std::mutex mutex_;                                   // guards the rest, and what kernels know of devices
  Array<std::shared_ptr<const LoadedModule>> loaded_;  // one for each device that it is used on
};

// All of a library's. Errors: kUnsupported.
Result<Array<std::unique_ptr<DeviceCode>>> MakeDeviceCode(const Array<tvm::DeviceModule>& modules);

// Refuses a library for modules that nothing here loads. `kinds` names them, in quotes.
Status RefuseModules(const std::string& kinds);

// Words for a library's description: "", or ", with device code for opencl".
std::string DeviceCodeText(const Array<std::unique_ptr<DeviceCode>>& code);

// The name by which compiled code calls ChooseLaunchDevice.
inline constexpr char kSetDeviceFunction[] = "__tvm_set_device";

}  // namespace rewire
