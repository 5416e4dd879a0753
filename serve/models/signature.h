// SPDX-License-Identifier: Apache-2.0
//
// The inputs and outputs of a model's entry function, in the form that requests are compared with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/types.h"
#include "rewire/serve/core/description.h"
#include "rewire/vm/program.h"

namespace rewire::serve {

// The two inputs that hold the list of texts in which the elements of a third are positions.
struct TextParts {
  std::uint32_t offsets = 0;  // where each text begins, and the last one's end
  std::uint32_t bytes = 0;
};

struct ModelInput {
  std::string name;
  DLDataType dtype{};
  std::vector<Dim> dims;
  InputHandle handle;
  std::optional<TextParts> texts;  // a client may give a BYTES tensor in place of the three
};

struct ModelOutput {
  std::string name;
  DLDataType dtype{};
  std::vector<Dim> dims;
  OutputHandle handle;
  // The shape follows from those of the inputs, so that memory can be bound before the run.
  bool derived = false;
};

struct ModelSignature {
  std::uint32_t function = 0;
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;
  std::vector<std::string> symbols;  // names of symbolic dimensions
  // The symbol of the first dimension of each input and output, but for `largest`. Requests can only be put
  // together if there is one.
  std::optional<std::uint32_t> batch_symbol;
  // An input that is one integer for a whole batch: the largest of those of its requests.
  std::optional<std::uint32_t> largest;
  std::int64_t most_rows = kNoLimit;  // the executable's own limit of it
};

// An output whose value is an input of the next step of a sequence; both are numbers in the signature.
struct StatePair {
  std::uint32_t output = 0;
  std::uint32_t input = 0;
};

// `largest` names the input that is one integer for a batch; empty: none is. Errors: kUnsupported, naming
// input or output, if a client could not give or take it. Then it is no tensor, its rank is unknown, or its
// element type is not in the protocol.
Result<ModelSignature> ReadSignature(const Program& program, std::string_view largest = {});

// Dimensions as clients see them: -1 stands for any size.
std::vector<TensorDescription> DescribeInputs(const ModelSignature& signature);
std::vector<TensorDescription> DescribeOutputs(const ModelSignature& signature);

}  // namespace rewire::serve
