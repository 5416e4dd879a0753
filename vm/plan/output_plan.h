// SPDX-License-Identifier: Apache-2.0
//
// The output plan of every leaf of every function's result. It says which instructions may make their tensor
// in memory that the caller supplies ("rewired"), and why the others may not.
//
// An allocation p is rewired for leaf L under three conditions:
// - (a) Nothing reads the tensor before something has been written to it.
// - (b) When p allocates, no other tensor that is rewired for L may still be read, nor p's own earlier
//   tensor. Live registers, ADTs, closures and arguments of a call that carries L's memory count as possible
//   reads.
// - (c) The tensor leaves by L only.
//
// An Invoke passes the memory on to its callee under the same rules. The callee's own plan says what it does
// with it.
//
// The plan decides where results may be made. Whether a leaf of a particular run was made in place is checked
// when the function returns: a leaf that lies elsewhere is copied. So the value is always that of an unbound
// run.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/analysis/register_set.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Why an instruction that makes a leaf is not rewired.
enum class CopyReason : std::uint8_t {
  kNone,         // it is rewired
  kInput,        // the leaf is an input or part of one
  kConstant,     // a constant or a parameter
  kScalar,       // an integer
  kUnknown,      // a value that a kernel or a closure returned
  kReadFirst,    // (a)
  kLive,         // (b)
  kLeavesTwice,  // (c): leaves by another leaf, too
  kOpaque,       // (c): leaves by a leaf of unknown structure, or the leaf itself has one
  kTooLarge,     // the function exceeds the limits of the analysis
};
REWIRE_API const char* CopyReasonText(CopyReason reason);

// One instruction that can make a leaf.
struct OutputSite {
  std::uint32_t pc = 0;
  // leaf of the function that an Invoke calls; not set for an allocation
  std::uint32_t callee_leaf = 0xFFFFFFFFu;
  CopyReason reason = CopyReason::kNone;
};

struct LeafPlan {
  // Every instruction that can make the leaf is rewired, including those in callees.
  bool rewired = false;
  // The first reason if it is not.
  CopyReason reason = CopyReason::kNone;
  // All instructions of this function that can make it, in the order of the code.
  Array<OutputSite> sites;

  // True if the leaf may take the input's memory (VirtualMachine::Donate). If false, the leaf is made
  // elsewhere and copied into the donated memory at the end.
  bool MayTakeInput(std::uint32_t input) const {
    return !inputs_unknown && (barred_inputs.empty() || !barred_inputs.Has(input));
  }
  // True if the input, or part of it, can be (part of) this leaf.
  bool ReturnsInput(std::uint32_t input) const {
    return inputs_unknown || (!returned_inputs.empty() && returned_inputs.Has(input));
  }

  bool inputs_unknown = false;     // nothing is known about the inputs; the two sets below are then not used
  RegisterSet barred_inputs{0};    // empty set without registers if it has no members
  RegisterSet returned_inputs{0};  // likewise
};

struct FunctionPlan {
  static constexpr std::uint32_t kNotRewired = 0;

  Array<LeafPlan> leaves;
  // By word of code, from the first instruction that is rewired to the last. For an allocation: its leaf + 1.
  // For an Invoke: 1 + an index in `calls`.
  Array<std::uint32_t> sites;
  std::size_t first_site = 0;
  // For each call that passes memory on, by leaf of the callee: this function's leaf + 1, or kNotRewired.
  Array<Array<std::uint32_t>> calls;

  std::uint32_t SiteAt(std::size_t pc) const {
    const std::size_t index = pc - first_site;  // wraps in front of the first one
    return index < sites.size() ? sites[index] : kNotRewired;
  }
};

// Rules that a test may switch off to show that a missing rule is noticed.
struct PlanRules {
  bool a = true;
  bool b = true;
  bool c = true;
  // The most block states that the analysis of one function may hold, in register entries. Beyond that, every
  // leaf is copied.
  std::size_t max_state_entries = std::size_t{1} << 24;
};

// Makes one plan per function of a verified module, callees before callers. Once the meter is exhausted, all
// leaves of the remaining functions are copied (kTooLarge). If that happens within a recursive group, this
// holds for the whole group.
REWIRE_API Array<FunctionPlan> PlanOutputs(const Module& module, const PlanRules& rules, WorkMeter* meter);
// The same with the default limits of Program::Link.
REWIRE_API Array<FunctionPlan> PlanOutputs(const Module& module);

}  // namespace rewire
