// SPDX-License-Identifier: Apache-2.0
//
// State: the driver and its devices. There is one in a process, and it is never destroyed.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/devices/cuda/attached_events.h"
#include "rewire/devices/cuda/driver.h"
#include "rewire/devices/cuda/failure.h"
#include "rewire/devices/cuda/pinned_blocks.h"
#include "rewire/devices/cuda/stream_failures.h"
#include "rewire/vm/kernel/stream_work.h"

namespace rewire::cuda {

// One device. Its primary context is shared with the rest of the process, so that its memory and streams can
// be passed to other libraries.
struct Device {
  CUdevice device = 0;
  std::mutex mutex;  // of `context`, while it is made
  CUcontext context = nullptr;
  bool has_pools = false;  // memory in stream order
  std::string name;
  std::string driver;
  std::string architecture;
  RewireDeviceProperties properties{};
};

// A device whose context is the thread's while this lives. Afterwards the one that the host had made current
// is it again: a thread of the host's may use contexts and devices of its own.
class Entered {
 public:
  Entered() = default;
  // `entered`: its context has been pushed.
  Entered(const CudaDriver& driver, Device* device, bool entered)
      : driver_(entered ? &driver : nullptr), device_(device) {}
  ~Entered() {
    CUcontext own = nullptr;
    if (driver_ != nullptr) driver_->cuCtxPopCurrent(&own);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  explicit operator bool() const { return device_ != nullptr; }
  const Device& operator*() const { return *device_; }
  const Device* operator->() const { return device_; }

 private:
  const CudaDriver* driver_ = nullptr;
  Device* device_ = nullptr;
};

struct State {
  static constexpr const char* kKind = "CUDA";

  CudaDriver driver;
  Nvrtc nvrtc;
  std::string nvrtc_reason;  // why there is none; empty if there is one
  std::deque<Device> devices;
  PinnedBlocks pinned;
  StreamFailures stream_failures;
  AttachedEvents attached_events;

  // False, with the words for it, if there is no driver or no device.
  bool Open(std::string* reason);
  static State& Of(void* context) { return *static_cast<State*>(context); }

  // Enters a device. False, with the thread's words set and *code, after a failure.
  Entered Enter(DLDevice device, int* code);
  // The same for what gives something back, which must not stay because this fails: the thread may have the
  // context already. False only if there is no such device.
  Entered EnterToRelease(DLDevice device);

  // The device, with its context made and not entered. Null, with the words and *code, after a failure.
  Device* Find(DLDevice device, int* code);

 private:
  bool Describe(int ordinal, std::string* reason);
};

inline CUstream StreamOf(void* stream) { return static_cast<CUstream>(stream); }
inline CUdeviceptr AddressOf(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Lets a stream wait for the events that are attached to it. Its device is entered.
CUresult WaitForAttached(const State& state, void* stream);

// Frees pinned memory. A device is entered.
int FreePinned(const State& state, const std::vector<void*>& blocks);

// A kernel with the most dynamic shared memory that a launch of it has been allowed.
struct Kernel {
  std::string name;
  CUfunction function = nullptr;
  std::mutex mutex;  // of `allowed_shared`
  std::uint32_t allowed_shared = 0;
};

// CUDA C++ as cubin for the device. Not thread-safe on one State's NVRTC only where NVRTC is not.
int Compile(const State& state, const Device& device, const std::string& source, const char* options,
            std::string* cubin);

// The functions of RewireDeviceApi, by file.
void AddMemory(RewireDeviceApi* api);       // memory.cc
void AddStreams(RewireStreamWorkApi* api);  // streams.cc: streams and events
void AddModules(RewireDeviceApi* api);      // modules.cc
void AddRecording(RewireDeviceApi* api);    // recording.cc

}  // namespace rewire::cuda
