// SPDX-License-Identifier: Apache-2.0
// The table of ONNX operators. One row an operator (or a range of its versions), one list a family, each in
// the file of the family's functions. A new operator is a row and a small function; a new family is one line
// in registry.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/status.h"
#include "compiler/operators/op.h"

namespace rewire::compiler {

inline constexpr int kAnyNumber = std::numeric_limits<int>::max();

enum OperatorFlags : std::uint8_t {
  kNeedsRanks = 0,
  kAnyRank = 1,  // it can do without knowing its inputs' ranks
  kAnyKind = 2,  // it takes sequences or optionals; implies kAnyRank
  kMayLack = 4,  // any of its inputs may be left out; it says itself which may not
};

struct Operator {
  const char* type;
  int since, until;  // operator set versions, both included; 0, 0: all
  int least_inputs, most_inputs;
  Status (*lower)(Op& op, const Operator& row);
  const char* kernel = nullptr;  // for rows that share a function
  std::uint8_t flags = kNeedsRanks;
};

// Checks inputs against the operator's row and lowers the node. kUnsupported and kInvalidFile with what the
// list of unsupported nodes shows as the reason.
Status LowerOperator(Op* op);

std::span<const Operator> ElementwiseOperators();
std::span<const Operator> ShapeOperators();
std::span<const Operator> ProductOperators();
std::span<const Operator> ConvolutionOperators();
std::span<const Operator> ReductionOperators();
std::span<const Operator> NormalizationOperators();
std::span<const Operator> MovementOperators();
std::span<const Operator> IndexingOperators();
std::span<const Operator> LossOperators();
std::span<const Operator> RecurrentOperators();
std::span<const Operator> QuantizationOperators();
std::span<const Operator> VisionOperators();
std::span<const Operator> GeneratorOperators();
std::span<const Operator> TrainingOperators();
std::span<const Operator> ControlFlowOperators();
std::span<const Operator> SequenceOperators();
std::span<const Operator> SignalOperators();

}  // namespace rewire::compiler
