// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of memory, and allocators. All memory of this library is the host's.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/onnxruntime_api/api.h"

struct OrtMemoryInfo {
  std::string name = "Cpu";
  OrtAllocatorType type = OrtDeviceAllocator;
  int id = 0;
  OrtMemType mem_type = OrtMemTypeDefault;
  OrtDeviceMemoryType device_mem_type = OrtDeviceMemoryType_DEFAULT;
};

namespace rewire::onnxruntime_api {

// The host's ordinary memory, in static storage.
const OrtMemoryInfo& HostMemory();
// malloc and free, in static storage: hosts compare it by address, and never own it.
OrtAllocator* DefaultOrtAllocator();

// A copy of a text, with the zero behind it, that the allocator frees. Null if it has no memory.
char* AllocateText(OrtAllocator* allocator, const std::string& text);

}  // namespace rewire::onnxruntime_api
