// SPDX-License-Identifier: Apache-2.0
//
// Generator: a version of a model that makes tokens, as its settings say and its signature confirms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/description.h"
#include "rewire/serve/generate/tokenizer.h"

namespace rewire::serve {

// An input that a generation fills with integers.
struct GeneratorInput {
  std::string name;  // empty: the model has no such input
  DLDataType dtype{};
  std::size_t rank = 0;
};

// Immutable; any threads.
struct Generator {
  std::string model;  // its name, and its version
  std::string version;
  GeneratorSettings settings;
  std::uint64_t timeout_us = 0;                // of a whole generation; 0: none
  std::shared_ptr<const Tokenizer> tokenizer;  // null: there is none
  GeneratorInput tokens, positions, mask, last, total;
  bool keeps_state = false;     // otherwise each step gets all tokens until then
  std::int64_t step_size = 0;   // the tokens that a step takes: 1, or 0 for any number
  std::int64_t vocabulary = 0;  // how many tokens there are; 0: it is known only in a run
};

// Compares settings with a model. `state` are the inputs that the server keeps from step to step. Errors:
// kInvalidArgument, naming the setting, for names that the model does not have, for another type or rank than
// is expected, and for an input that no setting gives. The tokenizer's are those of OpenTokenizer.
Result<Generator> ReadGenerator(const GeneratorSettings& settings, const std::vector<std::string>& state,
                                const std::vector<TensorDescription>& inputs,
                                const std::vector<TensorDescription>& outputs);

}  // namespace rewire::serve
