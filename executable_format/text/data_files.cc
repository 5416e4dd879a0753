// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/data_files.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/base/mapped_file.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/executable_format/tensor_files/npz.h"
#include "rewire/executable_format/tensor_files/safetensors.h"

namespace rewire::text {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

// The place where "file.npz:member" divides, or npos when no archive is named.
std::size_t FindMember(std::string_view reference) {
  for (const std::string_view extension : {".npz:", ".safetensors:"}) {
    const std::size_t found = reference.find(extension);
    if (found != std::string_view::npos) return found + extension.size() - 1;
  }
  return std::string_view::npos;
}

}  // namespace

Result<HostTensor> DataFiles::Load(const std::string& reference) {
  const std::size_t colon = FindMember(reference);
  const std::string file = reference.substr(0, colon);
  const std::string path = (std::filesystem::path(directory_) / file).string();
  if (EndsWith(file, ".npy")) return ReadNpy(path);
  const bool npz = EndsWith(file, ".npz");
  if (!npz && !EndsWith(file, ".safetensors")) {
    return Fail(
        StatusCode::kInvalidArgument,
        "'@" + reference + "' is not of the form @file.npy, @file.npz:name or @file.safetensors:name");
  }
  if (colon == std::string::npos) {
    return Fail(StatusCode::kInvalidArgument,
                "'@" + reference + "' does not say which tensor of the file; write @" + file + ":name");
  }
  auto archive = archives_.find(path);
  if (archive == archives_.end()) {
    Result<std::vector<NamedTensor>> tensors = npz ? ReadNpz(path) : ReadSafetensors(path);
    if (!tensors) return Forward(tensors);
    archive = archives_.emplace(path, std::move(*tensors)).first;
  }
  const std::string name = reference.substr(colon + 1);
  Array<std::string> known;
  for (const NamedTensor& member : archive->second) {
    if (member.name == name) return member.tensor;
    known.push_back(member.name);
  }
  return Fail(StatusCode::kNotFound,
              path + " has no tensor '" + name + "'" + KnownNames("tensors", name, known));
}

Result<SharedBytes> DataFiles::LoadBytes(const std::string& file) const {
  return ReadFile((std::filesystem::path(directory_) / file).string());
}

}  // namespace rewire::text
