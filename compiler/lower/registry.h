// SPDX-License-Identifier: Apache-2.0
//
// The table of ONNX operators. There is one row per operator (or range of its versions), and one list per
// family in the file of the family's functions. A new operator is a row and a small function. A new family is
// one line in registry.cc, under its domain.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

inline constexpr int kAnyNumber = std::numeric_limits<int>::max();
// The newest version of ONNX's operator set that the rows follow. To raise it, read what changed, and split
// the rows of operators whose meaning changed.
inline constexpr int kNewestOpset = 28;

enum OperatorFlags : std::uint8_t {
  kNeedsRanks = 0,
  kAnyRank = 1,        // works even if the ranks of its inputs are unknown
  kAnyKind = 2,        // it takes sequences or optionals; implies kAnyRank
  kMayLack = 4,        // any of its inputs may be left out; its function checks which may not
  kTakesStrings = 8,   // its function looks strings up (lower/string_tables.h)
  kMovesStrings = 16,  // it moves the elements of its first input; strings stay strings
  kKeepsRank = 32,     // its first output has the rank of its first input
  kJoinsRanks = 64,    // its output has the higher rank of its two inputs
};

struct Operator {
  const char* type;
  int since, until;  // operator set versions, both inclusive; until 0: the newest
  int least_inputs, most_inputs;
  const char* attributes;  // rules: operators/attribute_rules.h
  Status (*lower)(Op& op, const Operator& row);
  const char* kernel = nullptr;  // for rows that share a function
  std::uint8_t flags = kNeedsRanks;
};

// Returns the row for a node, after checking that operator, version and attributes are known. Errors:
// kUnsupported and kInvalidFile, with the reason that the list of unsupported nodes shows.
Result<const Operator*> RowOf(const Op& op);
// Checks the inputs against the operator's row and lowers the node. Errors as above.
Status LowerOperator(Op* op);
// The flags that all rows of an operator of ONNX's own domain have; 0 if there is no such operator.
std::uint8_t FlagsOf(std::string_view type);
// Every row with its domain, for tests.
struct DomainOperator {
  const char* domain;
  const Operator* row;
};
std::vector<DomainOperator> AllOperators();

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
std::span<const Operator> AttentionOperators();
std::span<const Operator> StringOperators();
std::span<const Operator> PreviewOperators();
std::span<const Operator> MachineLearningOperators();
std::span<const Operator> TreeOperators();
std::span<const Operator> SupportVectorOperators();
std::span<const Operator> CategoryOperators();
std::span<const Operator> MicrosoftOperators();
std::span<const Operator> MicrosoftAttentionOperators();
std::span<const Operator> ContribQuantizationOperators();
std::span<const Operator> ContribGatherOperators();

}  // namespace rewire::compiler
