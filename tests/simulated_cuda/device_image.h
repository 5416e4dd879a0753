// SPDX-License-Identifier: Apache-2.0
// A module image of the simulated CUDA driver, in C: a shared object of the host with a table of kernels. The
// simulated driver and device_code.h, which makes images, both include this.
#pragma once

#include <stdint.h>

extern "C" {

enum { kSimulatedImageVersion = 1, kSimulatedWarp = 32 };

struct SimulatedDim {
  unsigned x, y, z;
};

// The services of the driver for a thread of a kernel. Each may switch to another thread of the block.
struct SimulatedServices {
  // Waits for the other threads of the block that have not ended. How many of them passed a predicate that is
  // not 0.
  int (*barrier)(int predicate);
  // Waits for the lanes of `mask` that have not ended, then gives the value of each lane in `lanes[32]`.
  void (*exchange)(unsigned mask, uint64_t value, uint64_t* lanes);
  // The lanes of the warp that have not ended.
  unsigned (*live_lanes)(void);
  // Ends the kernel with an error. Does not return.
  void (*trap)(void);
  // The address by which host code knows a byte of device memory.
  uint64_t (*address_for_host)(const void* pointer);
};

// A thread of a kernel knows this of itself. An image has one for each thread of the operating system.
struct SimulatedThread {
  SimulatedDim thread_index, block_index, block_dim, grid_dim;
  void* dynamic_shared;
  const SimulatedServices* services;
};

enum SimulatedParameterKind {
  kSimulatedValue =
      0,  // any bytes. Words of device addresses in them are translated if there are more than 8 bytes
  kSimulatedPointer = 1,       // to memory that the kernel may write
  kSimulatedConstPointer = 2,  // to memory that it only reads
};

struct SimulatedParameter {
  unsigned kind;
  unsigned size;
};

struct SimulatedKernel {
  const char* name;
  void (*call)(void** arguments);  // runs one thread
  const SimulatedParameter* parameters;
  unsigned parameter_count;
  const SimulatedKernel* next;
};

struct SimulatedImage {
  unsigned version;
  const SimulatedKernel* kernels;
  SimulatedThread* (*thread)(void);
};

// Each image exports this under the name below.
using SimulatedImageFunction = const SimulatedImage* (*)(void);
#define REWIRE_SIMULATED_IMAGE_SYMBOL "rewire_simulated_image"
}
