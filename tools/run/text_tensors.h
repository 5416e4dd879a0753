// SPDX-License-Identifier: Apache-2.0
//
// Arrays of strings in .npy files ('<U7') and on the command line. A program has three tensors for them:
// positions in a list, the offsets of the list's strings, and their bytes (docs/format.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

struct TextArray {
  std::vector<std::int64_t> shape;
  std::vector<std::string> texts;  // UTF-8, one for each element
};

// Whether a tensor that was read from a file is an array of strings.
bool IsText(const HostTensor& tensor);
// Errors: kInvalidFile for what is no code point.
Result<TextArray> TextsIn(const HostTensor& tensor);
// The same array as files have it. Errors: kUnsupported for strings that numpy would need too much room for.
Result<HostTensor> TensorOfTexts(const TextArray& array);
// A string, or a nested list of strings, in JSON.
Result<TextArray> ParseTexts(std::string_view json);

// The three tensors.
struct TextParts {
  HostTensor positions, offsets, bytes;
};
TextParts PartsOf(const TextArray& array);
// Errors: kInvalidArgument if they are no such tensors.
Result<std::vector<std::string>> ListIn(const HostTensor& offsets, const HostTensor& bytes);

// The places of the other two tensors of strings among the inputs or results of a function. The metadata says
// it under the key; nullopt if the key is not there, or says something else.
struct TextPlaces {
  std::uint32_t offsets = 0, bytes = 0;
};
std::optional<TextPlaces> PlacesOf(const Module& module, const std::string& key, std::size_t count);

}  // namespace rewire::tools
