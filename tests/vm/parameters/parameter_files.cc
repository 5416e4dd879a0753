// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/parameters/parameter_files.h"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <memory>

#include "rewire/executable_format/compress_constant.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/executable_format/writer.h"

namespace rewire::test {
namespace {

SharedBytes BytesOf(const Tensor& tensor) {
  return {{static_cast<const std::byte*>(tensor.view().data()), tensor.view().bytes()},
          std::make_shared<Tensor>(tensor)};
}

std::vector<std::int64_t> ShapeOf(const Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

void Require(const Status& status) {
  if (!status) FAIL(status.error().message());
}

}  // namespace

Folder::Folder() {
  static std::atomic<int> counter{0};
  path_ = std::filesystem::temp_directory_path() /
          ("rewire_parameters_" + std::to_string(getpid()) + "_" + std::to_string(counter++));
  std::filesystem::create_directories(path_);
}

Folder::~Folder() { std::filesystem::remove_all(path_); }

ParameterSet SetOf(const Named& tensors) {
  ParameterSet set;
  for (const auto& [name, tensor] : tensors) set.Set(name, tensor);
  return set;
}

std::string WriteSafetensorsFile(const std::string& path, const Named& tensors) {
  std::vector<NamedTensor> members;
  for (const auto& [name, tensor] : tensors) {
    members.push_back({name, {tensor.dtype(), ShapeOf(tensor), BytesOf(tensor)}});
  }
  Require(WriteSafetensors(path, members));
  return path;
}

std::string WriteRwxFile(const std::string& path, const Named& tensors, bool compressed) {
  Module module;
  for (const auto& [name, tensor] : tensors) {
    Constant constant;
    constant.name = name;
    constant.type.kind = TypeKind::kTensor;
    constant.type.dtype = tensor.dtype();
    constant.type.rank = static_cast<std::int32_t>(tensor.shape().size());
    constant.type.dims.assign(tensor.shape().begin(), tensor.shape().end());
    constant.type.device = kHostDevice;
    constant.stored = BytesOf(tensor);
    constant.raw_bytes = constant.stored.view.size();
    if (compressed) Require(CompressConstant(&constant));
    module.constants.push_back(std::move(constant));
  }
  Require(WriteModule(module, path));
  return path;
}

std::string WriteTvmFile(const std::string& path, const Named& tensors) {
  std::ofstream file(path, std::ios::binary);
  const auto put = [&](auto number) { file.write(reinterpret_cast<const char*>(&number), sizeof(number)); };
  put(std::uint64_t{0xF7E58D4F05049CB7});
  put(std::uint64_t{0});
  put(std::uint64_t{tensors.size()});
  for (const auto& [name, tensor] : tensors) {
    put(std::uint64_t{name.size()});
    file << name;
  }
  put(std::uint64_t{tensors.size()});
  for (const auto& [name, tensor] : tensors) {
    put(std::uint64_t{0xDD5E40F096B4A13F});
    put(std::uint64_t{0});
    put(DLDevice{kDLCPU, 0});
    put(static_cast<std::int32_t>(tensor.shape().size()));
    put(tensor.dtype());
    for (const std::int64_t dim : tensor.shape()) put(dim);
    put(static_cast<std::int64_t>(tensor.view().bytes()));
    file.write(static_cast<const char*>(tensor.view().data()),
               static_cast<std::streamsize>(tensor.view().bytes()));
  }
  return path;
}

Tensor At(const ParameterSet& set, const std::string& name) {
  const std::size_t index = set.Find(name);
  if (index == set.size()) FAIL("nothing is called " + name);
  Result<Tensor> tensor = set.TryGet(index);
  if (!tensor) FAIL(tensor.error().message());
  return *std::move(tensor);
}

const void* AddressIn(const Program& program, const std::string& name) {
  return At(ParameterSet::Of(program), name).view().data();
}

}  // namespace rewire::test
