// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/parameter_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/compress_constant.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/tensor_files/npz.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tools/io/progress.h"
#include "rewire/tools/io/tensor_io.h"

namespace rewire::tools {
namespace {

std::string CodecName(std::uint32_t codec) {
  if (codec == kCodecNone) return "none";
  return codec == kCodecZstd ? "zstd" : fmt::format("codec {}", codec);
}

bool IsExecutableFile(Span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), reinterpret_cast<const unsigned char*>(file.data()));
}

std::vector<StoredParameter> ConstantsOf(const Executable& executable) {
  std::vector<StoredParameter> list;
  for (const Constant& constant : executable.module().constants) {
    if (constant.kind != ConstantKind::kData || constant.name.empty()) continue;
    HostTensor tensor{constant.type.dtype, {constant.type.dims.begin(), constant.type.dims.end()}, {}};
    list.push_back(
        {{constant.name, std::move(tensor)}, constant.stored.view.size(), CodecName(constant.codec)});
  }
  return list;
}

// Writes as TVM's save_param_dict does: names, then each tensor behind a header of its own.
Status WriteParameterList(const std::string& path, Span<const NamedTensor> tensors) {
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return Forward(file);
  std::vector<std::byte> pending;
  const auto put = [&pending](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    pending.insert(pending.end(), bytes, bytes + size);
  };
  const auto number = [&put](auto value) { put(&value, sizeof(value)); };
  number(std::uint64_t{0xF7E58D4F05049CB7});
  number(std::uint64_t{0});
  number(std::uint64_t{tensors.size()});
  for (const NamedTensor& named : tensors) {
    number(std::uint64_t{named.name.size()});
    put(named.name.data(), named.name.size());
  }
  number(std::uint64_t{tensors.size()});
  for (const NamedTensor& named : tensors) {
    const HostTensor& tensor = named.tensor;
    // TVM's boolean is one bit, stored in a byte.
    const DLDataType dtype = tensor.dtype == kBool8 ? MakeDType(kUInt, 1) : tensor.dtype;
    number(std::uint64_t{0xDD5E40F096B4A13F});
    number(std::uint64_t{0});
    number(DLDevice{kDLCPU, 0});
    number(static_cast<std::int32_t>(tensor.shape.size()));
    number(dtype);
    for (const std::int64_t dim : tensor.shape) number(dim);
    number(std::uint64_t{tensor.bytes.view.size()});
    Status written = file->Write(pending);
    if (written) written = file->Write(tensor.bytes.view);
    if (!written) return written;
    pending.clear();
  }
  if (Status written = file->Write(pending); !written) return written;
  return file->Commit();
}

Status WriteExecutable(const std::string& path, Span<const NamedTensor> tensors, int level) {
  Module module;
  for (const NamedTensor& named : tensors) {
    Constant constant;
    constant.name = named.name;
    constant.type.kind = TypeKind::kTensor;
    constant.type.dtype = named.tensor.dtype;
    constant.type.rank = static_cast<std::int32_t>(named.tensor.shape.size());
    constant.type.dims.assign(named.tensor.shape.begin(), named.tensor.shape.end());
    constant.type.device = kHostDevice;
    constant.stored = named.tensor.bytes;
    constant.raw_bytes = constant.stored.view.size();
    module.constants.push_back(std::move(constant));
  }
  if (Status valid = VerifyModule(module); !valid) return Forward(valid, path);
  if (level != 0) {
    if (const Result<std::uint64_t> saved = CompressConstants(&module, level); !saved) return Forward(saved);
  }
  return WriteModule(module, path);
}

}  // namespace

Result<std::vector<StoredParameter>> ListParameters(const std::string& path) {
  if (!path.ends_with(".npz")) {
    const Result<SharedBytes> file = MapFile(path);
    if (!file) return Forward(file);
    if (IsExecutableFile(file->view)) {
      const Result<Executable> executable = Executable::FromBytes(*file);
      if (!executable) return Forward(executable, path);
      return ConstantsOf(*executable);
    }
  }
  const Result<std::vector<NamedTensor>> tensors = ReadParameterFiles({path});
  if (!tensors) return Forward(tensors);
  std::vector<StoredParameter> list;
  for (const NamedTensor& named : *tensors) {
    list.push_back(
        {{named.name, {named.tensor.dtype, named.tensor.shape, {}}}, named.tensor.bytes.view.size(), "none"});
  }
  return list;
}

Result<std::vector<NamedTensor>> ReadParameterFiles(const std::vector<std::string>& paths) {
  std::vector<NamedTensor> all;
  std::vector<std::pair<std::string, std::string>> origins;  // name and file, sorted by name
  for (const std::string& path : paths) {
    const Result<ParameterSet> set = ReadParameters(path);
    if (!set) return Forward(set);
    for (std::size_t i = 0; i < set->size(); ++i) {
      const Result<Tensor> tensor = set->TryGet(i);
      if (!tensor) return Forward(tensor, path);
      Result<HostTensor> host = ToHostTensor(*tensor);
      if (!host) return Forward(host, path);
      all.push_back({std::string(set->name(i)), *std::move(host)});
      origins.emplace_back(set->name(i), path);
    }
  }
  std::sort(origins.begin(), origins.end());
  for (std::size_t i = 1; i < origins.size(); ++i) {
    if (origins[i].first != origins[i - 1].first) continue;
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("both {} and {} have a parameter called '{}'", origins[i - 1].second,
                            origins[i].second, origins[i].first));
  }
  return all;
}

Status WriteParameterFile(const std::string& path, Span<const NamedTensor> tensors, int level) {
  if (path.ends_with(".rwx")) return WriteExecutable(path, tensors, level);
  if (level != 0) {
    return Fail(StatusCode::kInvalidArgument, fmt::format("only .rwx files are compressed, not '{}'", path));
  }
  if (path.ends_with(".safetensors")) return WriteSafetensors(path, tensors);
  if (path.ends_with(".npz")) return WriteNpz(path, tensors);
  if (path.ends_with(".params")) return WriteParameterList(path, tensors);
  return Fail(
      StatusCode::kInvalidArgument,
      fmt::format("cannot tell the format of '{}': expected .safetensors, .rwx, .npz or .params (TVM's) at "
                  "its end",
                  path));
}

Result<std::uint64_t> CompressConstants(Module* module, int level) {
  std::uint64_t saved = 0;
  Progress progress("constant", module->constants.size());
  for (std::size_t i = 0; i < module->constants.size(); ++i) {
    progress.Show(i);
    Constant& constant = module->constants[i];
    const std::size_t before = constant.stored.view.size();
    if (Status compressed = CompressConstant(&constant, level); !compressed) return Forward(compressed);
    saved += before - constant.stored.view.size();
  }
  return saved;
}

}  // namespace rewire::tools
