// SPDX-License-Identifier: Apache-2.0
//
// When a run stops: breakpoints, watches and steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/tools/debug/call_stack.h"
#include "rewire/tools/debug/places.h"
#include "rewire/tools/debug/register_view.h"

namespace rewire::tools {

// How a run goes on: to the next stop, by instructions, by instructions of this call, or out of this call.
enum class Pace : std::uint8_t { kContinue, kStep, kNext, kFinish };

class Stops {
 public:
  Stops(const Module& module, bool unicode) : module_(module), unicode_(unicode) {}

  // Return the number by which Remove knows it. A temporary breakpoint is removed when a run stops.
  int AddBreakpoint(std::string text, std::vector<Site> sites, bool temporary);
  int AddWatch(std::uint32_t function, RegisterPath path);
  bool Remove(int number);
  void RemoveAll();
  // A breakpoint that is there at this instruction.
  bool IsBreakpoint(const Site& site) const;
  // A line for each.
  std::string Text() const;

  // Forgets what the watches have seen.
  void BeginRun();
  // The run goes on from a call of this depth. kStep and kNext stop after `count` instructions, kContinue at
  // the `count`-th stop.
  void Go(Pace pace, std::uint64_t count, std::uint32_t depth);
  // Why the run stops before the innermost call's instruction, in one or more lines; nullopt if it goes on.
  // An empty text stands for the end of a step.
  std::optional<std::string> Arrive(const CallStack& stack);
  // Records what watches show now, so that only later changes count.
  void LookAtWatches(const CallStack& stack);

 private:
  struct Breakpoint {
    int number = 0;
    std::string text;
    std::vector<Site> sites;
    bool temporary = false;
    std::uint64_t hits = 0;
  };
  struct Watch {
    int number = 0;
    std::uint32_t function = 0;
    RegisterPath path;
    std::optional<std::uint64_t> seen;  // none while the function is not active
    std::string before;
  };
  // The lines for every watch that changed.
  std::string Changes(const CallStack& stack);
  bool PaceEnds(std::uint32_t depth);

  const Module& module_;
  bool unicode_;
  int last_number_ = 0;
  std::vector<Breakpoint> breakpoints_;
  std::vector<Watch> watches_;
  Pace pace_ = Pace::kContinue;
  std::uint64_t count_ = 1;
  std::uint32_t depth_ = 0;
};

}  // namespace rewire::tools
