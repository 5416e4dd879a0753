// SPDX-License-Identifier: Apache-2.0
// Parameter files, and what Programs hold, for the tests of parameters.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "rewire/vm/parameter_set.h"
#include "rewire/vm/program.h"

namespace rewire::test {

// A folder of the test's own, removed at the end of its scope.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

using Named = std::vector<std::pair<std::string, Tensor>>;

ParameterSet SetOf(const Named& tensors);
// Each writes vectors of floats in a kind of file and gives its path back.
std::string WriteSafetensorsFile(const std::string& path, const Named& tensors);
std::string WriteRwxFile(const std::string& path, const Named& tensors, bool compressed = false);
std::string WriteTvmFile(const std::string& path, const Named& tensors);

// The tensor in a set under a name; the test fails when there is nothing.
Tensor At(const ParameterSet& set, const std::string& name);
// The address of a constant or parameter in a Program.
const void* AddressIn(const Program& program, const std::string& name);

}  // namespace rewire::test
