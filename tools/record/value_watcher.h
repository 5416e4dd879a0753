// SPDX-License-Identifier: Apache-2.0
//
// Passes on each value that a run makes, just after it was made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rewire/base/status.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/tools/record/value_names.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/value.h"

namespace rewire::tools {

struct MadeValue {
  const Module& module;
  std::uint32_t function;
  std::uint32_t pc;  // of the instruction that made it
  std::uint32_t reg;
  const std::string& name;  // of the model's value; empty if the model has none
  bool channels_last;       // it is that value with axis 1 moved to the end
  Value value;
};

// The values of the model that a compiled program knows, and all that kernels write or return.
class ValueWatcher : public Observer {
 public:
  ValueWatcher(const Module& module, std::function<void(const MadeValue&)> sink)
      : names_(module), sink_(std::move(sink)) {}

  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction& instruction) override;
  const ValueNames& names() const { return names_; }

 private:
  ValueNames names_;
  std::function<void(const MadeValue&)> sink_;
  // The instruction before this one; its depth is 0 at the beginning.
  std::uint32_t function_ = 0, pc_ = 0, depth_ = 0;
};

// With axis 1 of the result at the end of `tensor`: from the channels-last layout to that of the model.
// Returns a tensor of less than three axes as it is.
HostTensor ChannelsFirst(const HostTensor& tensor);

// One tensor or integer of a value, which may be a tree.
struct ValueLeaf {
  std::string path;  // ".1.0": fields; empty if the value is no tree
  Value value;
};
std::vector<ValueLeaf> LeavesOf(const Value& value);

}  // namespace rewire::tools
