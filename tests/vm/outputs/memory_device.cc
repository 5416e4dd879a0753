// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/outputs/memory_device.h"

#include <cstdlib>
#include <cstring>

#include "rewire/executable_format/instruction.h"

namespace rewire::test {
namespace {

constexpr std::uint32_t kDeviceIndex = 1;

RewireDeviceApi MakeApi() {
  RewireDeviceApi api{};
  api.struct_size = sizeof(api);
  api.device_type = kMemoryDevice.device_type;
  api.name = "memory";
  api.flags = REWIRE_DEVICE_HOST_ADDRESSABLE;
  api.error = [](void*) { return "no memory"; };
  api.allocate = [](void*, DLDevice, std::uint64_t bytes, std::uint64_t alignment, const char*, void*,
                    void** block) {
    const std::uint64_t unit = alignment < 64 ? 64 : alignment;
    *block = std::aligned_alloc(unit, (bytes + unit) / unit * unit);
    if (*block == nullptr) return REWIRE_DEVICE_NO_MEMORY;
    std::memset(*block, 0x7B, bytes);
    return REWIRE_DEVICE_OK;
  };
  api.deallocate = [](void*, DLDevice, void* block, void*) {
    std::free(block);
    return REWIRE_DEVICE_OK;
  };
  api.copy = [](void*, void* to, DLDevice, const void* from, DLDevice, std::uint64_t bytes, void*) {
    std::memmove(to, from, bytes);
    return REWIRE_DEVICE_OK;
  };
  api.synchronize = [](void*, DLDevice, void*) { return REWIRE_DEVICE_OK; };
  return api;
}

void Move(TypeNode* type) {
  if (type->kind == TypeKind::kTensor && type->device == kHostDevice && type->dtype != kInt64) {
    type->device = type->dtype == kFloat32 ? kDeviceIndex : kAnyDevice;
  }
}

void MoveCode(Array<std::uint32_t>* code) {
  for (std::size_t pc = 0; pc < code->size(); pc += WordsOf((*code)[pc])) {
    std::uint32_t* instruction = code->data() + pc;
    const Opcode opcode = OpcodeOf(*instruction);
    if (opcode == Opcode::kAllocStorage) {
      if (DecodeDType(instruction[WordOf(Opcode::kAllocStorage, "dtype")]) == kInt64) continue;
      instruction[WordOf(Opcode::kAllocStorage, "device")] = kDeviceIndex;
    } else if (opcode == Opcode::kDeviceCopy) {
      instruction[WordOf(Opcode::kDeviceCopy, "src_device")] = kDeviceIndex;
      instruction[WordOf(Opcode::kDeviceCopy, "dst_device")] = kDeviceIndex;
    }
  }
}

}  // namespace

const RewireDeviceApi& MemoryDevice() {
  static const RewireDeviceApi kApi = MakeApi();
  return kApi;
}

void MoveToMemoryDevice(Module* module) {
  module->devices.push_back({kMemoryDevice.device_type, kMemoryDevice.device_id, ""});
  for (Constant& constant : module->constants) Move(&constant.type);
  for (Function& function : module->functions) {
    for (NamedType& input : function.inputs) {
      for (TypeNode& node : input.type.nodes) Move(&node);
    }
    for (TypeNode& node : function.result.nodes) Move(&node);
    MoveCode(&function.code);
  }
}

}  // namespace rewire::test
