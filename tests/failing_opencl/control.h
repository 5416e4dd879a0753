// SPDX-License-Identifier: Apache-2.0
//
// Tests control the libOpenCL.so.1 of this folder by this. It gives each call to the real library, and has
// one fail on demand. All functions may be called from any thread.
#pragma once

#include <cstdint>

namespace rewire::failing_opencl {

// The objects that the program has made or retained, and not released.
struct Alive {
  std::uint64_t contexts, queues, memory_objects, events, programs, kernels, command_buffers;
};

// The functions, found by their exported names, rewire_failing_opencl_NAME.
//
// Reset: no call is to fail, and CountCalls begins at 0 again. What is alive stays.
// FailCall: the k-th call from now on, counted from 1, fails with this code. A release that fails has
// released.
//   Functions that give the text of an error are not counted.
// CountCalls: since Reset.
//
// X(name, result type, parameters)
#define REWIRE_FAILING_OPENCL_CONTROL(X)         \
  X(Reset, void, ())                             \
  X(FailCall, void, (std::uint64_t k, int code)) \
  X(CountCalls, std::uint64_t, ())               \
  X(GetAlive, void, (Alive * alive))

struct Control {
#define REWIRE_CONTROL_ROW(name, result, parameters) result(*name) parameters = nullptr;
  REWIRE_FAILING_OPENCL_CONTROL(REWIRE_CONTROL_ROW)  // NOLINT(readability-identifier-naming)
#undef REWIRE_CONTROL_ROW

  // `find` is dlsym bound to the library. False if a function is missing: the library is a real one.
  template <typename Find>
  bool Load(Find find) {
    bool found = true;
#define REWIRE_CONTROL_ROW(name, result, parameters)                             \
  name = reinterpret_cast<decltype(name)>(find("rewire_failing_opencl_" #name)); \
  found = found && name != nullptr;
    REWIRE_FAILING_OPENCL_CONTROL(REWIRE_CONTROL_ROW)
#undef REWIRE_CONTROL_ROW
    return found;
  }
};

}  // namespace rewire::failing_opencl
