// SPDX-License-Identifier: Apache-2.0
#include "executable_format/import/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shared_bytes.h"
#include "executable_format/import/stream.h"

namespace rewire::tvm {
namespace {

constexpr std::size_t kConstantAlignment = 64;
constexpr std::int32_t kFirstRemoteType = 128;  // TVM marks devices reached by RPC so

SharedBytes Aligned(Span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  if (IsAligned(bytes, kConstantAlignment)) return {bytes, owner};
  const Result<SharedBytes> copy = AlignedCopy(bytes, kConstantAlignment);
  return copy ? *copy : SharedBytes{bytes, owner};  // slower for who reads it, not wrong
}

}  // namespace

std::uint32_t KernelAlignment(std::string_view tvm_version) {
  return tvm_version.starts_with("0.8") || tvm_version.starts_with("0.9") ? 128 : 64;
}

Result<std::uint32_t> AddDevice(Module& module, const DeviceEntry& device) {
  if (device.type < 1 || device.id < 0) {
    return Malformed(fmt::format("a device has type {} and id {}", device.type, device.id));
  }
  if (device.type >= kFirstRemoteType) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("a device of type {} is on another machine, reached by RPC", device.type));
  }
  DeviceEntry entry = device;
  if (entry.memory_scope == "global") entry.memory_scope.clear();
  const auto found = std::find(module.devices.begin(), module.devices.end(), entry);
  const auto index = static_cast<std::uint32_t>(found - module.devices.begin());
  if (found == module.devices.end()) module.devices.push_back(std::move(entry));
  return index;
}

Constant DataConstant(std::string name, const ForeignTensor& tensor, std::uint32_t device,
                      const std::shared_ptr<const void>& owner) {
  Constant constant;
  constant.kind = ConstantKind::kData;
  constant.name = std::move(name);
  constant.type.kind = TypeKind::kTensor;
  constant.type.dtype = tensor.dtype;
  constant.type.rank = static_cast<std::int32_t>(tensor.shape.size());
  constant.type.dims = tensor.shape;
  constant.type.device = device;
  constant.raw_bytes = tensor.bytes.size();
  constant.stored = Aligned(tensor.bytes, owner);
  return constant;
}

std::string UniqueNames::Make(const std::string& name, const std::string& fallback) {
  const std::string& base = name.empty() ? fallback : name;
  std::string unique = base;
  for (int i = 2; !used_.insert(unique).second; ++i) unique = fmt::format("{}_{}", base, i);
  return unique;
}

}  // namespace rewire::tvm
