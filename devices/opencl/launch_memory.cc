// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/launch_memory.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace rewire::opencl {
namespace {

// Parts that a buffer keeps. An arena needs one for each tensor in it.
constexpr std::size_t kMostParts = 4096;

}  // namespace

// The driver keeps the memory until the work is done.
LaunchMemory::~LaunchMemory() {
  for (cl_mem memory : temporary_) state_.driver.clReleaseMemObject(memory);
}

int LaunchMemory::FindPlace(const Device& device, const RewireLaunchArgument& argument, Place* place) const {
  const void* address = argument.u.address;
  if (argument.kind != REWIRE_LAUNCH_ADDRESS || address == nullptr) return REWIRE_DEVICE_OK;
  Buffer* buffer = state_.addresses.Find(address);
  if (buffer == nullptr) {
    return FailWith(REWIRE_DEVICE_FAILED, "an argument's address is not one of a live OpenCL buffer");
  }
  const std::uint64_t offset = AddressSpace::OffsetOf(address);
  const std::uint64_t alignment = device.properties.part_alignment;
  if (offset != 0 && (offset >= buffer->bytes || offset % alignment != 0)) {
    return FailWith(REWIRE_DEVICE_FAILED, "an argument lies " + std::to_string(offset) +
                                              " bytes into its buffer of " + std::to_string(buffer->bytes) +
                                              "; the device needs a multiple of " +
                                              std::to_string(alignment) + " bytes");
  }
  if (argument.bytes > buffer->bytes - offset) {
    return FailWith(REWIRE_DEVICE_FAILED, "an argument of " + std::to_string(argument.bytes) +
                                              " bytes lies " + std::to_string(offset) +
                                              " bytes into its buffer of " + std::to_string(buffer->bytes));
  }
  *place = {buffer, offset, argument.bytes == 0 ? buffer->bytes : offset + argument.bytes, nullptr};
  return REWIRE_DEVICE_OK;
}

std::uint64_t LaunchMemory::EndOf(const Place& place) const {
  std::uint64_t end = place.end;
  bool alone = place.offset == 0;
  for (const Place& other : places_) {
    if (other.buffer != place.buffer) continue;
    alone = alone && &other == &place;
    if (other.offset == place.offset) end = std::max(end, other.end);
  }
  return alone ? place.buffer->bytes : end;
}

int LaunchMemory::FindObject(Place* place, std::uint64_t end) {
  Buffer* buffer = place->buffer;
  if (place->offset == 0 && end == buffer->bytes) {
    place->memory = buffer->memory;
    return REWIRE_DEVICE_OK;
  }
  const cl_buffer_region region{place->offset, end - place->offset};
  const std::pair<std::uint64_t, std::uint64_t> key(region.origin, region.size);
  const std::lock_guard<std::mutex> lock(buffer->mutex);
  if (const auto known = buffer->parts.find(key); known != buffer->parts.end()) {
    place->memory = known->second;
    return REWIRE_DEVICE_OK;
  }
  cl_int error = CL_SUCCESS;
  place->memory =
      state_.driver.clCreateSubBuffer(buffer->memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  if (error != CL_SUCCESS) return FailIn("clCreateSubBuffer", error);
  if (buffer->parts.size() < kMostParts) {
    buffer->parts.emplace(key, place->memory);
  } else {
    temporary_.push_back(place->memory);
  }
  return REWIRE_DEVICE_OK;
}

int LaunchMemory::Find(const Device& device, const RewireLaunch& launch) {
  places_.resize(launch.argument_count);
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const int code = FindPlace(device, launch.arguments[i], &places_[i]);
    if (code != REWIRE_DEVICE_OK) return code;
  }
  for (Place& place : places_) {
    if (place.buffer == nullptr) continue;
    const int code = FindObject(&place, EndOf(place));
    if (code != REWIRE_DEVICE_OK) return code;
  }
  return REWIRE_DEVICE_OK;
}

std::vector<cl_mem> LaunchMemory::Objects() const {
  std::vector<cl_mem> objects;
  for (const Place& place : places_) objects.push_back(place.memory);
  return objects;
}

}  // namespace rewire::opencl
