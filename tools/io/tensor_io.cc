// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/tensor_io.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/executable_format/tensor_files/npz.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/tools/io/file_kind.h"

namespace rewire::tools {
namespace {

bool EndsWith(std::string_view text, std::string_view end) { return text.ends_with(end); }

Result<std::vector<NamedTensor>> ReadParameterList(const SharedBytes& file) {
  Result<tvm::NamedTensors> parameters = tvm::ReadParameterList(file.view);
  if (!parameters) return Forward(parameters);
  std::vector<NamedTensor> tensors;
  for (auto& [name, tensor] : *parameters) {
    const SharedBytes bytes = AlignedFor(tensor.dtype, {tensor.bytes, file.owner});
    tensors.push_back({std::move(name), {tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}, bytes}});
  }
  return tensors;
}

}  // namespace

Result<std::vector<NamedTensor>> ReadArchive(const std::string& path) {
  if (EndsWith(path, ".npz")) return ReadNpz(path);
  const Result<SharedBytes> file = MapFile(path);
  if (!file) return Forward(file);
  if (FindFileKind(path, file->view) != FileKind::kParameterList) return ReadSafetensors(path);
  Result<std::vector<NamedTensor>> tensors = ReadParameterList(*file);
  if (!tensors) return Forward(tensors, path);
  return tensors;
}

Result<ParameterSet> ReadParameters(const std::string& path) {
  if (!EndsWith(path, ".npz")) return ParameterSet::Open(path);
  const Result<std::vector<NamedTensor>> members = ReadNpz(path);
  if (!members) return Forward(members);
  ParameterSet set;
  for (const NamedTensor& member : *members) {
    Result<Tensor> tensor = ToTensor(member.tensor);
    if (!tensor) return Forward(tensor, path);
    set.Set(member.name, *std::move(tensor));
  }
  return set;
}

Status WriteTensors(const std::string& path, Span<const NamedTensor> tensors) {
  if (EndsWith(path, ".npz")) return WriteNpz(path, tensors);
  if (EndsWith(path, ".safetensors")) return WriteSafetensors(path, tensors);
  if (tensors.size() == 1) return WriteNpy(path, tensors[0].tensor);
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("cannot write {} tensors to '{}': an .npy file holds one; use .npz or .safetensors",
                          tensors.size(), path));
}

Result<Tensor> ToTensor(const HostTensor& tensor) {
  // Inputs are read-only to programs, so that sharing a mapped file is sound.
  void* data = const_cast<std::byte*>(tensor.bytes.view.data());
  return Tensor::Wrap(TensorView(data, tensor.dtype, tensor.shape), tensor.bytes.owner);
}

Result<HostTensor> ToHostTensor(const Tensor& tensor) {
  const TensorView view = tensor.view();
  if (!IsHostDevice(view.device())) {
    return Fail(StatusCode::kUnsupported, "the tensor lies on a device; copy it to the host in the program");
  }
  if (!view.IsContiguous()) {
    const Result<Tensor> copy = Tensor::CopyOf(view);
    if (!copy) return Forward(copy);
    return ToHostTensor(*copy);
  }
  HostTensor host;
  host.dtype = view.dtype();
  host.shape.assign(view.shape().begin(), view.shape().end());
  host.bytes.view = {static_cast<const std::byte*>(view.data()), static_cast<std::size_t>(view.bytes())};
  host.bytes.owner = std::make_shared<Tensor>(tensor);
  return host;
}

}  // namespace rewire::tools
