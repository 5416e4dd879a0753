// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/tables.h"

#include <fmt/format.h>

#include "rewire/base/shared_bytes.h"
#include "rewire/executable_format/import/stream.h"

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

DeviceTable::DeviceTable(Module* module) : module_(*module) {
  for (std::uint32_t i = 0; i < module->devices.size(); ++i) {
    const DeviceEntry& known = module->devices[i];
    indices_.emplace(std::tuple(known.type, known.id, known.memory_scope), i);
  }
}

Result<std::uint32_t> DeviceTable::Add(const DeviceEntry& device) {
  if (device.type < 1 || device.id < 0) {
    return Malformed(fmt::format("a device has type {} and id {}", device.type, device.id));
  }
  if (device.type >= kFirstRemoteType) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("a device of type {} is on another machine, reached by RPC", device.type));
  }
  DeviceEntry entry = device;
  if (entry.memory_scope == "global") entry.memory_scope.clear();
  const auto [found, is_new] = indices_.emplace(std::tuple(entry.type, entry.id, entry.memory_scope),
                                                static_cast<std::uint32_t>(module_.devices.size()));
  if (is_new) module_.devices.push_back(std::move(entry));
  return found->second;
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
  if (used_.insert(base).second) return base;
  // Numbers that were taken before are not tried again, so that a name given n times costs n steps.
  std::uint32_t& number = next_.try_emplace(base, 2).first->second;
  for (;;) {
    std::string unique = fmt::format("{}_{}", base, number++);
    if (used_.insert(unique).second) return unique;
  }
}

}  // namespace rewire::tvm
