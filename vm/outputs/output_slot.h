// SPDX-License-Identifier: Apache-2.0
// A bound output while it is bound: where its memory is and whether a run may make the tensor there.
#pragma once

#include <cstdint>

#include "vm/memory/account_array.h"
#include "vm/objects.h"
#include "vm/outputs/output.h"
#include "vm/outputs/output_plan.h"
#include "vm/value.h"

namespace rewire {

struct OutputSlot {
  enum Mode : std::uint8_t { kUnbound, kTensor, kCapacity, kAllocator };

  // A run's reasons, beside the plan's, why a leaf is copied.
  enum Obstacle : std::uint8_t {
    kNoObstacle,
    kStrided,
    kMisaligned,
    kOverlapsInput,
    kDonationBarred,
    kElsewhere
  };

  Mode mode = kUnbound;
  Obstacle obstacle = kNoObstacle;  // of the current run
  bool donated = false;             // the memory is that of input `donated_input`
  bool copied = false;              // of the last run
  std::uint32_t donated_input = 0;
  TensorView tensor;                 // kTensor: memory, dtype, shape, strides
  Value owner;                       // keeps memory that the VM was given
  StorageObject* storage = nullptr;  // what holds it, or a donated input's; null for borrowed memory
  void* data = nullptr;              // first byte; for kAllocator what the host gave last
  std::uint64_t capacity = 0;        // bytes
  DLDevice device = kHost;
  OutputAllocator allocator;

  // Of the last run: the leaf's shape and dtype.
  std::int32_t rank = -1;
  DLDataType dtype{};
  std::int64_t shape[32];
};

const char* ObstacleText(OutputSlot::Obstacle obstacle);

// The outputs of one function that are bound; room for all of its leaves.
struct OutputSlots {
  AccountArray<OutputSlot> leaves;
  std::uint32_t bound = 0;  // how many are
};

}  // namespace rewire
