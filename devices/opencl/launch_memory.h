// SPDX-License-Identifier: Apache-2.0
//
// LaunchMemory: the memory objects that stand for the addresses of one launch.
//
// OpenCL does not say what becomes of a launch that writes one of two overlapping objects. So an argument
// ends where its bytes end, if the launch tells their number and if
//   - it begins inside its buffer, or
//   - another argument of the launch lies in the same buffer.
// Otherwise the object is the whole buffer. Arguments that begin at one place share one object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rewire/devices/opencl/state.h"

namespace rewire::opencl {

// For one thread, while the launch is made.
class LaunchMemory {
 public:
  explicit LaunchMemory(State& state) : state_(state) {}
  ~LaunchMemory();
  LaunchMemory(const LaunchMemory&) = delete;
  LaunchMemory& operator=(const LaunchMemory&) = delete;

  int Find(const Device& device, const RewireLaunch& launch);

  // Null for an argument that is no address, or a null one.
  cl_mem memory(std::size_t argument) const { return places_[argument].memory; }
  // The buffer's serial number; 0 without a buffer.
  std::uint64_t serial(std::size_t argument) const {
    const Buffer* buffer = places_[argument].buffer;
    return buffer == nullptr ? 0 : buffer->serial;
  }
  // True if an object is of this launch alone: its buffer has too many parts.
  bool temporary() const { return !temporary_.empty(); }
  std::vector<cl_mem> Objects() const;

 private:
  struct Place {
    Buffer* buffer = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    cl_mem memory = nullptr;
  };

  int FindPlace(const Device& device, const RewireLaunchArgument& argument, Place* place) const;
  // The end of what all arguments that begin at this place use. The buffer's end if `place` is alone in it.
  std::uint64_t EndOf(const Place& place) const;
  int FindObject(Place* place, std::uint64_t end);

  State& state_;
  std::vector<Place> places_;
  std::vector<cl_mem> temporary_;
};

}  // namespace rewire::opencl
