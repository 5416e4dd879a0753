// SPDX-License-Identifier: Apache-2.0
//
// A session's inputs and outputs, as the model has them, beside those of the executable's entry function.
//
// They are the same but for strings and maps. Strings are positions in a list. The list is part of the
// executable, or two more inputs or outputs hold it: offsets and bytes. A sequence of maps is a tensor with a
// row for each map and a column for each key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/onnxruntime_api/sessions/model_text.h"
#include "rewire/vm/program.h"

namespace rewire::onnxruntime_api {

// Two more inputs or outputs, by their places.
struct ListParts {
  std::uint32_t offsets = 0;
  std::uint32_t bytes = 0;
};

struct Port {
  std::string name;
  OrtTypeInfo type;
  std::uint32_t place = 0;  // in the function
  std::optional<ListParts> parts;
  std::optional<std::vector<std::string>> list;  // what positions stand for
  // Keys of maps: of one of the two kinds.
  std::vector<std::string> text_keys;
  std::vector<std::int64_t> number_keys;

  bool has_keys() const { return !text_keys.empty() || !number_keys.empty(); }
};

struct Ports {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Port> overridable;  // initializers that a run may give; they are no inputs of the function
  std::unordered_map<std::string, std::size_t> input_by_name;
  std::unordered_map<std::string, std::size_t> output_by_name;
  std::uint32_t input_places = 0;  // inputs of the function
};

// `text` has what the model declares; an executable of its own has no text. Errors: kUnsupported for an input
// or output whose type this library does not serve.
Result<Ports> ReadPorts(const Program& program, std::uint32_t function, const ModelText& text);

}  // namespace rewire::onnxruntime_api
