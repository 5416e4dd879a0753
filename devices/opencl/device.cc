// SPDX-License-Identifier: Apache-2.0
//
// The library's entry point, and its struct of functions.
#include "rewire/devices/opencl/state.h"
#include "rewire/devices/support/open_library.h"

namespace rewire::opencl {
namespace {

void Describe(RewireStreamWorkApi* with) {
  RewireDeviceApi* const api = &with->device;
  api->device_type = kDLOpenCL;
  api->name = "opencl";
  api->flags = REWIRE_DEVICE_HANDLES;
  AddMemory(api);
  AddEvents(api);
  AddModules(api);
  AddRecording(api);
}

}  // namespace
}  // namespace rewire::opencl

extern "C" __attribute__((visibility("default"))) int rewire_device_open(std::uint32_t version,
                                                                         const RewireDeviceApi** api,
                                                                         const char** reason) {
  return rewire::devices::OpenLibrary<rewire::opencl::State>(rewire::opencl::Describe, version, api, reason);
}
