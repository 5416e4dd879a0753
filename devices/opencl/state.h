// SPDX-License-Identifier: Apache-2.0
//
// State: the driver, its devices and their memory. There is one in a process, and it is never destroyed.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "rewire/devices/opencl/address_space.h"
#include "rewire/devices/opencl/command_buffers.h"
#include "rewire/devices/opencl/driver.h"
#include "rewire/devices/opencl/failure.h"
#include "rewire/devices/opencl/recording.h"
#include "rewire/vm/kernel/device_api.h"

namespace rewire::opencl {

// One device. Devices of one platform share a context, so that events and copies work between them.
struct Device {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;  // the default stream
  std::string name;
  std::string driver;
  std::string architecture;
  RewireDeviceProperties properties{};
  CommandBuffers command_buffers;  // empty where the driver has none
};

// A stream is a queue that works in order.
struct State {
  static constexpr const char* kKind = "OpenCL";

  Driver driver;
  std::deque<Device> devices;
  AddressSpace addresses;
  // Pinned memory of the host: the buffer that is mapped there.
  std::mutex pinned_mutex;
  std::unordered_map<void*, cl_mem> pinned;
  // Imported handles: the buffer of each, so that one handle has one address.
  std::mutex imported_mutex;
  std::unordered_map<cl_mem, Buffer*> imported;
  OpenRecordings recordings;

  // Finds all devices: GPUs and accelerators first, then CPUs, each in the driver's order. The environment
  // variable REWIRE_OPENCL_PLATFORM, if set, names a part of the platform's name that it must have. False,
  // with the words for it, if there is none.
  bool Open(std::string* reason);

  static State& Of(void* context) { return *static_cast<State*>(context); }
  // Success, or a failure with the thread's words set if the queue is being recorded: `what` cannot be
  // recorded.
  int RefuseIfRecorded(cl_command_queue queue, const char* what);
  // Null, with the thread's words set, if there is no such device.
  Device* Find(DLDevice device);
  cl_command_queue QueueOf(DLDevice device, void* stream) {
    return stream != nullptr ? static_cast<cl_command_queue>(stream)
                             : devices[static_cast<std::size_t>(device.device_id)].queue;
  }

 private:
  bool AddDevices(cl_platform_id platform, cl_device_type type);
  std::string PlatformText(cl_platform_id platform, cl_platform_info what) const;
  std::string DeviceText(cl_device_id device, cl_device_info what) const;
  template <typename T>
  T DeviceValue(cl_device_id device, cl_device_info what) const {
    T value{};
    driver.clGetDeviceInfo(device, what, sizeof(value), &value, nullptr);
    return value;
  }
  void Describe(Device* device) const;

  std::unordered_map<cl_platform_id, cl_context> contexts_;
};

// The functions of RewireDeviceApi, by file.
void AddMemory(RewireDeviceApi* api);     // memory.cc
void AddEvents(RewireDeviceApi* api);     // events.cc: streams and events
void AddModules(RewireDeviceApi* api);    // modules.cc
void AddRecording(RewireDeviceApi* api);  // recording.cc

}  // namespace rewire::opencl
