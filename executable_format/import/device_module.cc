// SPDX-License-Identifier: Apache-2.0
//   str format | u64 kernels | per kernel: str key, str name, vec<DLDataType>, vec<str> launch tags,
//   (tvm-ffi) vec<i32> extra tags | str code                             (str, vec: u64 count, elements)
// The name is empty in old versions. The key is what host code asks for.
#include "rewire/executable_format/import/device_module.h"

#include <utility>

namespace rewire::tvm {
namespace {

constexpr std::size_t kStringBytes = sizeof(std::uint64_t);  // the least that a string takes

std::string Text(ByteReader& reader) { return std::string(reader.ReadString(reader.Read<std::uint64_t>())); }

DeviceKernel ReadKernel(DeviceModuleForm form, ByteReader& reader) {
  DeviceKernel kernel;
  kernel.name = Text(reader);
  Text(reader);  // the name once more, or nothing
  for (auto count = reader.ReadCount<std::uint64_t>(sizeof(DLDataType)); count > 0; --count) {
    kernel.arguments.push_back(reader.Read<DLDataType>());
  }
  for (auto count = reader.ReadCount<std::uint64_t>(kStringBytes); count > 0 && reader.ok(); --count) {
    kernel.launch_tags.push_back(Text(reader));
  }
  if (form == DeviceModuleForm::kClassic) return kernel;
  for (auto count = reader.ReadCount<std::uint64_t>(sizeof(std::int32_t)); count > 0; --count) {
    if (reader.Read<std::int32_t>() != 0) kernel.has_tensor_maps = true;
  }
  return kernel;
}

}  // namespace

bool IsDeviceModule(std::string_view kind) { return kind == "opencl" || kind == "cuda"; }

Result<DeviceModule> ReadDeviceModule(std::string_view kind, DeviceModuleForm form, ByteReader& reader) {
  DeviceModule module;
  module.kind = std::string(kind);
  module.format = Text(reader);
  for (auto count = reader.ReadCount<std::uint64_t>(2 * kStringBytes); count > 0 && reader.ok(); --count) {
    module.kernels.push_back(ReadKernel(form, reader));
  }
  module.code = reader.ReadBytes(reader.Read<std::uint64_t>());
  if (reader.ok()) return module;
  return Fail(StatusCode::kInvalidFile, "the module of kind '{}' ends outside the library's data", kind);
}

}  // namespace rewire::tvm
