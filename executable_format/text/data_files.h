// SPDX-License-Identifier: Apache-2.0
// The tensor files that an assembly text names: @w.npy, @weights.npz:fc1, @weights.safetensors:fc1.weight.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::text {

class DataFiles {
 public:
  // Relative paths start at `directory`; empty: the working directory.
  explicit DataFiles(std::string directory) : directory_(std::move(directory)) {}

  // The tensor that `reference` names. An archive is read once. Errors say what is wrong with the reference
  // or the file: an unknown extension, no such member, and what the file's reader reports.
  Result<HostTensor> Load(const std::string& reference);
  // All bytes of a file of any kind.
  Result<SharedBytes> LoadBytes(const std::string& file) const;

 private:
  std::string directory_;
  std::unordered_map<std::string, std::vector<NamedTensor>> archives_;
};

}  // namespace rewire::text
