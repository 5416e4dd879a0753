// SPDX-License-Identifier: Apache-2.0
//
// OutputSlot: a bound output, with its memory and whether a run may make the tensor there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "rewire/vm/memory/account_array.h"
#include "rewire/vm/output.h"
#include "rewire/vm/plan/output_plan.h"
#include "rewire/vm/value.h"
#include "rewire/vm/value/memory_range.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

struct OutputSlot {
  enum Mode : std::uint8_t { kUnbound, kTensor, kCapacity, kAllocator };

  // Reasons of a run, in addition to those of the plan, why a leaf is copied. A set of bits.
  enum Obstacle : std::uint8_t {
    kStrided = 1,
    kMisaligned = 2,
    kOverlapsInput = 4,
    kDonationBarred = 8,
    kElsewhere = 16,  // none of the others
  };

  Mode mode = kUnbound;
  std::uint8_t obstacles = 0;  // of the current run
  bool donated = false;        // the memory is that of the input `donated_input`
  bool copied = false;         // in the last run
  bool staged = false;         // in the last run: it came by way of pinned memory (Interpreter::CopyStaged)
  bool strided = false;        // kTensor
  std::uint32_t donated_input = 0;
  // For kTensor: dtype, shape and strides (which are stored in `dims`) and the first element.
  DLTensor form{};
  std::int64_t dims[2 * kMaxRank];
  Value owner;  // keeps memory alive that the VM was given
  // owner of the memory, or of a donated input's memory; null for borrowed memory
  StorageObject* storage = nullptr;
  void* data = nullptr;        // first byte; for kAllocator the host's last answer
  std::uint64_t capacity = 0;  // bytes
  DLDevice device = kHost;
  OutputAllocator allocator;

  // Shape and dtype of the leaf in the last run.
  std::int32_t rank = -1;
  DLDataType dtype{};
  std::int64_t shape[kMaxRank];

  // Sets `form` to that of a view with at most kMaxRank dimensions.
  void Describe(const TensorView& view) {
    const std::size_t rank = view.shape().size();
    form = view.dl();
    form.shape = dims;
    form.strides = dims + kMaxRank;
    std::copy_n(view.dl().shape, rank, form.shape);
    std::copy_n(view.dl().strides, rank, form.strides);
    strided = !view.IsContiguous();
    MoveTo(view.data());
  }
  void MoveTo(void* first) {
    data = first;
    form.data = first;
    form.byte_offset = 0;
  }
  // The bytes that the output may be written to: the binding's memory, or the allocator's last answer.
  MemoryRange extent() const { return strided ? RangeOf(form) : RangeOf(data, capacity); }
};

// The reasons as text.
std::string ObstaclesText(std::uint8_t obstacles);

// The bound outputs of one function, with room for all of its leaves.
struct OutputSlots {
  AccountArray<OutputSlot> leaves;
  std::uint32_t bound = 0;  // number of bound outputs
};

}  // namespace rewire
