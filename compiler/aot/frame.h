// SPDX-License-Identifier: Apache-2.0
//
// Frames: a function as it is called at one place. Calls are expanded, so that each way of calls that leads
// to a function has a frame of its own, with its own states.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "rewire/base/work_meter.h"
#include "rewire/compiler/aot/static_value.h"
#include "rewire/executable_format/analysis/blocks.h"
#include "rewire/executable_format/analysis/liveness.h"
#include "rewire/executable_format/module.h"

namespace rewire::aot {

// By register.
using State = std::vector<Value>;

// The facts hold of a function's code, wherever it is called.
struct FunctionFacts {
  FunctionFacts(const Function& function, WorkMeter* meter);

  Array<BasicBlock> blocks;
  std::vector<RegisterSet> live_in;                   // by block
  std::map<std::uint32_t, RegisterSet> live_after;    // by pc of instructions that reserve memory or call
  std::map<std::uint32_t, std::uint32_t> block_at{};  // by pc of its first instruction
};

struct Frame {
  static constexpr std::int32_t kNowhere = -1;

  std::uint32_t id = 0;
  std::uint32_t function = 0;
  std::uint32_t depth = 1;
  const FunctionFacts* facts = nullptr;
  // The frame that calls, the place of the call, and what is in its registers then.
  Frame* caller = nullptr;
  std::uint32_t call_pc = 0;
  State caller_state{};
  // By leaf of the function's result: the leaf of the entry point's result in whose memory it may be made.
  std::vector<std::int32_t> destinations{};

  std::vector<Value> arguments{};
  std::vector<std::optional<State>> entries{};  // by block; none: no path leads there
  std::set<std::uint32_t> waiting{};            // blocks whose entry has changed since they were walked over
  std::optional<Value> result{};                // none: it does not return
  std::map<std::uint32_t, std::unique_ptr<Frame>> callees{};  // by pc of the call
};

}  // namespace rewire::aot
