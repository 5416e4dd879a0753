// SPDX-License-Identifier: Apache-2.0
//
// The VM's results as a host's outputs.
#pragma once

#include <vector>

#include "rewire/onnxruntime_api/runs/run.h"
#include "rewire/vm/output.h"

namespace rewire::onnxruntime_api {

// Memory that no new output may share: that of inputs, and of outputs that already are the host's.
class UsedMemory {
 public:
  void Add(const void* data, std::uint64_t bytes);
  bool Overlaps(const void* data, std::uint64_t bytes) const;

 private:
  struct Range {
    const char* begin;
    const char* end;
  };
  std::vector<Range> ranges_;
};

// Makes a value of a result of the VM.
Result<std::shared_ptr<ValueBody>> TakeOutput(const Port& port, const VirtualMachine& vm, UsedMemory* used);

// Writes `from` into the host's value, which has the same type and shape. A value of one element may also be
// a scalar, or take one, and then has the shape of `from`.
Status CopyInto(const ValueBody& from, const Port& port, ValueBody* to);

}  // namespace rewire::onnxruntime_api
