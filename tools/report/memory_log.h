// SPDX-License-Identifier: Apache-2.0
// Logs where the values of a run lay in memory, and how long.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "rewire/tools/inspect/memory_plan.h"
#include "rewire/vm/observer.h"

namespace rewire::tools {

// Notes the host memory that registers hold before each instruction: what the program allocated, without
// inputs, constants and parameters. Callers' registers count while a function that they call runs.
class MemoryLog : public Observer {
 public:
  // Instructions beyond `most` are not looked at: a loop may have many.
  explicit MemoryLog(std::uint32_t most) : most_(most) {}

  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction& instruction) override;

  // Ends the run: what still lives ends with it. Call it once.
  void Finish();
  const std::vector<MemoryBlock>& blocks() const { return blocks_; }  // after Finish
  std::uint32_t steps() const { return step_; }
  bool complete() const { return complete_; }
  // The place of each kernel call among the instructions, in order.
  const std::vector<std::uint32_t>& calls() const { return calls_; }

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, bool>;  // address, bytes, is_storage
  struct Open {
    std::uint32_t holders = 0;  // frames whose registers have it
    std::uint32_t from = 0;
    std::string name;
  };
  using Frame = std::map<Key, std::uint32_t>;  // with the register

  // `found` is null where a frame has ended.
  void Replace(Frame* frame, Frame now, const Instruction* found);

  const std::uint32_t most_;
  std::uint32_t step_ = 0;
  bool complete_ = true;
  std::vector<Frame> frames_;  // by depth
  std::map<Key, Open> open_;
  std::vector<MemoryBlock> blocks_;
  std::vector<std::uint32_t> calls_;
};

}  // namespace rewire::tools
