// SPDX-License-Identifier: Apache-2.0
//
// Reads parameter sets from files. The first bytes of a file decide its kind.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/vm/link/parameter_tensor.h"
#include "rewire/vm/parameter_set.h"

namespace rewire {
namespace {

struct Parameter {
  std::string name;
  Tensor tensor;
};

Status Append(std::string name, DLDataType dtype, Span<const std::int64_t> shape, const SharedBytes& bytes,
              Array<Parameter>* parameters) {
  Result<Tensor> tensor = ParameterTensor(name, dtype, shape, bytes);
  if (!tensor) return Forward(tensor);
  parameters->push_back({std::move(name), *std::move(tensor)});
  return {};
}

Status ReadSafetensors(const SharedBytes& bytes, Array<Parameter>* parameters) {
  Result<std::vector<NamedTensor>> tensors = ParseSafetensors(bytes);
  if (!tensors) return Forward(tensors);
  for (NamedTensor& named : *tensors) {
    const HostTensor& tensor = named.tensor;
    Status added = Append(std::move(named.name), tensor.dtype, tensor.shape, tensor.bytes, parameters);
    if (!added) return added;
  }
  return {};
}

Status ReadTvm(const SharedBytes& bytes, Array<Parameter>* parameters) {
  Result<tvm::NamedTensors> tensors = tvm::ReadParameterList(bytes.view);
  if (!tensors) return Forward(tensors);
  for (auto& [name, foreign] : *tensors) {
    // TVM aligns nothing.
    const SharedBytes aligned = AlignedFor(foreign.dtype, {foreign.bytes, bytes.owner});
    Status added = Append(std::move(name), foreign.dtype, foreign.shape, aligned, parameters);
    if (!added) return added;
  }
  return {};
}

bool IsExecutable(Span<const std::byte> bytes) {
  // The first four bytes, so that a file that a transfer as text has changed is told from a stranger.
  return bytes.size() >= 4 && std::memcmp(bytes.data(), kMagic.data(), 4) == 0;
}

}  // namespace

Result<ParameterSet> ParameterSet::Open(const std::string& path, const OpenOptions& options,
                                        const ConstantCodecs& codecs) {
  const Result<SharedBytes> bytes = options.copy ? ReadFile(path) : MapFile(path);
  if (!bytes) return Forward(bytes);
  Result<ParameterSet> set = FromBytes(*bytes, options, codecs);
  if (!set) return Forward(set, path);
  return set;
}

Result<ParameterSet> ParameterSet::FromBytes(const SharedBytes& bytes, const OpenOptions& options,
                                             const ConstantCodecs& codecs) {
  if (IsExecutable(bytes.view)) {
    const Result<Executable> executable = Executable::FromBytes(bytes, options);
    if (!executable) return Forward(executable);
    return Of(*executable, codecs);
  }
  Array<Parameter> parameters;
  const bool of_tvm = tvm::IsParameterList(bytes.view);
  if (Status read = of_tvm ? ReadTvm(bytes, &parameters) : ReadSafetensors(bytes, &parameters); !read)
    return Forward(read);
  // In order, so that each is added at the end.
  std::sort(parameters.begin(), parameters.end(),
            [](const Parameter& a, const Parameter& b) { return a.name < b.name; });
  ParameterSet set;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // Only TVM's files can name one twice.
    if (i > 0 && parameters[i].name == parameters[i - 1].name)
      return Fail(StatusCode::kInvalidFile, "two parameters are called {}", parameters[i].name);
    set.Set(parameters[i].name, parameters[i].tensor);
  }
  return set;
}

}  // namespace rewire
