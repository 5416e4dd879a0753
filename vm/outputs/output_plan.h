// SPDX-License-Identifier: Apache-2.0
// The output plan: for every leaf of every function's result, which instructions may make their tensor in
// memory that the caller supplies ("rewired"), and why the others may not.
//
// An allocation p is rewired for leaf L when
//   (a) nothing reads the tensor before something has been written to it;
//   (b) no other tensor that is rewired for L, nor an earlier one of p's own, may still be read when p
//   allocates: not
//       through a live register, an ADT, a closure, or an argument of a call that carries L's memory along;
//   (c) it leaves by L alone.
// An Invoke carries the memory to its callee under the same rules; the callee's own plan says what it does
// with it. The plan decides where results may be made. Whether a leaf of a particular run has been made in
// place is seen when the function returns: a leaf that stands elsewhere is copied. So the value is always
// that of an unbound run.
#pragma once

#include <cstdint>
#include <string>

#include "base/array.h"
#include "base/export.h"
#include "executable_format/module.h"

namespace rewire {

// Why a producer of a leaf is not rewired.
enum class CopyReason : std::uint8_t {
  kNone,         // it is
  kInput,        // the leaf is an input, or part of one
  kConstant,     // a constant or a parameter
  kScalar,       // an integer
  kUnknown,      // a value that a kernel or a closure returned
  kReadFirst,    // (a)
  kLive,         // (b)
  kLeavesTwice,  // (c): also by another leaf
  kOpaque,       // (c): by a leaf of unknown structure, or the leaf itself is one
  kTooLarge,     // the function exceeds what is analysed
};
REWIRE_API const char* CopyReasonText(CopyReason reason);

// One instruction that can make a leaf.
struct OutputSite {
  std::uint32_t pc = 0;
  std::uint32_t callee_leaf = 0xFFFFFFFFu;  // of the function that an Invoke calls; none for an allocation
  CopyReason reason = CopyReason::kNone;
};

struct LeafPlan {
  // Every way to make the leaf is rewired, callees included.
  bool rewired = false;
  // The first reason against it.
  CopyReason reason = CopyReason::kNone;
  // All instructions of this function that can make it, by place.
  Array<OutputSite> sites;
  // By input: whether the leaf may take the input's memory (VirtualMachine::Donate). Where false, the leaf is
  // made elsewhere and copied into the donated memory at the end.
  Array<std::uint8_t> may_take_input;
  // By input: whether the input, or part of it, can be (part of) this leaf.
  Array<std::uint8_t> returns_input;
};

struct FunctionPlan {
  static constexpr std::uint32_t kNotRewired = 0;

  Array<LeafPlan> leaves;
  // By word of code; empty when nothing is rewired. For an allocation: its leaf + 1. For an Invoke: 1 + an
  // index in `calls`.
  Array<std::uint32_t> sites;
  // Per call that carries memory along, by the callee's leaves: this function's leaf + 1, or kNotRewired.
  Array<Array<std::uint32_t>> calls;
};

// Rules that a test may switch off to see that their absence is noticed.
struct PlanRules {
  bool a = true;
  bool b = true;
  bool c = true;
  // Block states that the analysis of a function may hold at once, in register entries. Beyond it every leaf
  // is copied.
  std::size_t max_state_entries = std::size_t{1} << 26;
};

// One plan per function of a verified module.
REWIRE_API Array<FunctionPlan> PlanOutputs(const Module& module, const PlanRules& rules = {});

}  // namespace rewire
