// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "rewire/vm/device/device_api.h"
#include "rewire/vm/packed_function.h"

namespace rewire::test {

// A second device, whose memory the host must not touch. Its pointers are addresses in a space of its own:
// reading one on the host would be a segmentation fault.
class FakeDevice {
 public:
  FakeDevice() {
    api.struct_size = sizeof(api);
    api.device_type = kDLExtDev;
    api.name = "fake";
    api.context = this;
    api.host_addressable = false;
    api.allocate = [](void* context, DLDevice, std::uint64_t bytes, std::uint64_t alignment,
                      const char* scope) -> void* {
      auto* self = static_cast<FakeDevice*>(context);
      if (self->full) return nullptr;
      self->next = (self->next + alignment - 1) / alignment * alignment;
      const std::uintptr_t address = self->next;
      self->next += bytes + 64;
      self->blocks[address] = {std::vector<unsigned char>(bytes), scope};
      return reinterpret_cast<void*>(address);
    };
    api.deallocate = [](void* context, DLDevice, void* block) {
      static_cast<FakeDevice*>(context)->blocks.erase(reinterpret_cast<std::uintptr_t>(block));
    };
    api.copy = [](void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
                  std::uint64_t bytes, void*) {
      auto* self = static_cast<FakeDevice*>(context);
      if (self->broken) {
        SetKernelError("RuntimeError", "the bus is down");
        return -1;
      }
      ++self->copies;
      std::memcpy(self->Host(to, to_device), self->Host(const_cast<void*>(from), from_device), bytes);
      return 0;
    };
    api.synchronize = [](void*, DLDevice, void*) { return 0; };
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  void* Host(void* pointer, DLDevice device) {
    if (device.device_type == kDLCPU) return pointer;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    auto block = std::prev(blocks.upper_bound(address));
    return block->second.bytes.data() + (address - block->first);
  }

  struct Block {
    std::vector<unsigned char> bytes;
    std::string scope;
  };
  RewireDeviceApi api{};
  std::map<std::uintptr_t, Block> blocks;
  std::uintptr_t next = 4096;
  int copies = 0;
  bool full = false;
  bool broken = false;
};

}  // namespace rewire::test
