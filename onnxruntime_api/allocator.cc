// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/allocator.h"

#include <cstdlib>
#include <cstring>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/key_value_pairs.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

constexpr std::size_t kAlignment = 64;  // of a cache line; kernels read vectors faster from there

void* AllocateHost(OrtAllocator*, std::size_t size) {
  if (size == 0 || size > PTRDIFF_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
}
void FreeHost(OrtAllocator*, void* memory) { std::free(memory); }
const OrtMemoryInfo* InfoOfHost(const OrtAllocator*) { return &HostMemory(); }
OrtStatus* StatsOfHost(const OrtAllocator*, OrtKeyValuePairs** out) {
  CreateKeyValuePairs(out);
  return *out == nullptr ? OutOfMemory() : nullptr;
}
void* AllocateOnStream(OrtAllocator* self, std::size_t size, void*) { return AllocateHost(self, size); }
OrtStatus* ShrinkHost(OrtAllocator*) { return nullptr; }

OrtStatus* MakeInfo(OrtMemoryInfo info, OrtMemoryInfo** out) {
  return Guard([&]() -> OrtStatus* {
    *out = new OrtMemoryInfo(std::move(info));
    return nullptr;
  });
}

}  // namespace

const OrtMemoryInfo& HostMemory() {
  static const OrtMemoryInfo* const memory = new OrtMemoryInfo;  // hosts release values in static destructors
  return *memory;
}

OrtAllocator* DefaultOrtAllocator() {
  static OrtAllocator allocator = {REWIRE_ORT_API_VERSION, AllocateHost, FreeHost,         InfoOfHost,
                                   AllocateHost,           StatsOfHost,  AllocateOnStream, ShrinkHost};
  return &allocator;
}

char* AllocateText(OrtAllocator* allocator, const std::string& text) {
  char* const copy = static_cast<char*>(allocator->Alloc(allocator, text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

OrtStatus* CreateMemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType mem_type,
                            OrtMemoryInfo** out) noexcept {
  if (std::strcmp(name, "Cpu") != 0) {
    *out = nullptr;
    return Guard([&] {
      return InvalidArgument(std::string("Specified device is not supported. Rewire's libonnxruntime has "
                                         "'Cpu' alone, given '") +
                             name + "'");
    });
  }
  return MakeInfo({"Cpu", type, id, mem_type, OrtDeviceMemoryType_DEFAULT}, out);
}
OrtStatus* CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device, std::uint32_t,
                               std::int32_t id, OrtDeviceMemoryType mem_type, std::size_t,
                               OrtAllocatorType type, OrtMemoryInfo** out) noexcept {
  if (device != OrtMemoryInfoDeviceType_CPU) {
    return InvalidArgument("CreateMemoryInfo_V2: Rewire's libonnxruntime has memory of the CPU alone");
  }
  return Guard([&] { return MakeInfo({name, type, id, OrtMemTypeDefault, mem_type}, out); });
}
OrtStatus* CreateCpuMemoryInfo(OrtAllocatorType type, OrtMemType mem_type, OrtMemoryInfo** out) noexcept {
  return MakeInfo({"Cpu", type, 0, mem_type, OrtDeviceMemoryType_DEFAULT}, out);
}
OrtStatus* CompareMemoryInfo(const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out) noexcept {
  const bool equal = a->name == b->name && a->type == b->type && a->id == b->id && a->mem_type == b->mem_type;
  *out = equal ? 0 : -1;
  return nullptr;
}
OrtStatus* MemoryInfoGetName(const OrtMemoryInfo* memory, const char** out) noexcept {
  *out = memory->name.c_str();
  return nullptr;
}
OrtStatus* MemoryInfoGetId(const OrtMemoryInfo* memory, int* out) noexcept {
  *out = memory->id;
  return nullptr;
}
OrtStatus* MemoryInfoGetMemType(const OrtMemoryInfo* memory, OrtMemType* out) noexcept {
  *out = memory->mem_type;
  return nullptr;
}
OrtStatus* MemoryInfoGetType(const OrtMemoryInfo* memory, OrtAllocatorType* out) noexcept {
  *out = memory->type;
  return nullptr;
}
void MemoryInfoGetDeviceType(const OrtMemoryInfo*, OrtMemoryInfoDeviceType* out) noexcept {
  *out = OrtMemoryInfoDeviceType_CPU;
}
OrtDeviceMemoryType MemoryInfoGetDeviceMemType(const OrtMemoryInfo* memory) noexcept {
  return memory->device_mem_type;
}
std::uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo*) noexcept { return 0; }
void ReleaseMemoryInfo(OrtMemoryInfo* memory) noexcept { delete memory; }

OrtStatus* AllocatorAlloc(OrtAllocator* allocator, std::size_t size, void** out) noexcept {
  *out = allocator->Alloc(allocator, size);
  return nullptr;
}
OrtStatus* AllocatorFree(OrtAllocator* allocator, void* memory) noexcept {
  allocator->Free(allocator, memory);
  return nullptr;
}
OrtStatus* AllocatorGetInfo(const OrtAllocator* allocator, const OrtMemoryInfo** out) noexcept {
  *out = allocator->Info(allocator);
  return nullptr;
}
OrtStatus* AllocatorGetStats(const OrtAllocator* allocator, OrtKeyValuePairs** out) noexcept {
  // An allocator of a host whose header is older ends before this function.
  if (allocator->version < 23 || allocator->GetStats == nullptr) return StatsOfHost(allocator, out);
  return allocator->GetStats(allocator, out);
}
OrtStatus* GetAllocatorWithDefaultOptions(OrtAllocator** out) noexcept {
  *out = DefaultOrtAllocator();
  return nullptr;
}
OrtStatus* CreateAllocator(const OrtSession*, const OrtMemoryInfo*, OrtAllocator** out) noexcept {
  *out = DefaultOrtAllocator();
  return nullptr;
}
void ReleaseAllocator(OrtAllocator*) noexcept {}

}  // namespace rewire::onnxruntime_api
