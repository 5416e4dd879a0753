// SPDX-License-Identifier: Apache-2.0
//
// The library's entry point, and its struct of functions.
#include "rewire/devices/cuda/state.h"
#include "rewire/devices/support/open_library.h"

namespace rewire::cuda {
namespace {

void Describe(RewireStreamWorkApi* with) {
  RewireDeviceApi* const api = &with->device;
  api->device_type = kDLCUDA;
  api->name = "cuda";
  AddMemory(api);
  AddStreams(with);
  AddModules(api);
  AddRecording(api);
}

}  // namespace
}  // namespace rewire::cuda

extern "C" __attribute__((visibility("default"))) int rewire_device_open(std::uint32_t version,
                                                                         const RewireDeviceApi** api,
                                                                         const char** reason) {
  return rewire::devices::OpenLibrary<rewire::cuda::State>(rewire::cuda::Describe, version, api, reason);
}
