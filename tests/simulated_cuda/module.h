// SPDX-License-Identifier: Apache-2.0
// A module of the simulated CUDA driver: a shared object of the host, opened from memory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "rewire/tests/simulated_cuda/device_image.h"
#include "rewire/tests/simulated_cuda/simulator.h"

namespace rewire::simulated_cuda {

struct Function {
  const SimulatedKernel* kernel = nullptr;
  Module* module = nullptr;
  int most_dynamic_shared = 48 << 10;
};

struct Module : std::enable_shared_from_this<Module> {
  ~Module();
  Device* device = nullptr;
  // The file stays open as long as the library: the loader knows libraries by their paths, and the path
  // has the file's number.
  int file = -1;
  void* library = nullptr;
  const SimulatedImage* image = nullptr;
  std::map<std::string, std::unique_ptr<Function>> functions;  // those that were asked for
};

// Opens an image from its first byte; its size follows from its headers.
CUresult OpenImage(const void* image, std::shared_ptr<Module>* module);

}  // namespace rewire::simulated_cuda
