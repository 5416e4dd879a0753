// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <string_view>
#include <tuple>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/base/message.h"
#include "rewire/base/sort.h"
#include "rewire/executable_format/verify/context.h"

namespace rewire::verify {
namespace {

Status CheckDevices(const Module& module, const FormatLimits& limits) {
  const Array<DeviceEntry>& devices = module.devices;
  if (devices.empty() || !(devices[0] == DeviceEntry{})) {
    return Violation("device 0 is not the host, {cpu, 0}");
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceEntry& device = devices[i];
    if (device.type < 1 || device.id < 0) {
      return Violation("device {} has type {} and id {}; types start at 1, ids at 0", i, device.type,
                       device.id);
    }
    if (!device.memory_scope.empty()) {
      Status name = CheckName({"the memory scope of device {}", i}, device.memory_scope, limits);
      if (!name) return name;
    }
  }
  // Equal ones side by side, the first of each first.
  Array<std::uint32_t> order;
  for (std::uint32_t i = 0; i < devices.size(); ++i) order.push_back(i);
  const auto key = [&](std::uint32_t i) {
    return std::make_tuple(devices[i].type, devices[i].id, std::string_view(devices[i].memory_scope), i);
  };
  Sort(order, [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (!(devices[order[i - 1]] == devices[order[i]])) continue;
    return Violation("devices {} and {} are the same", order[i - 1], order[i]);
  }
  return {};
}

// Every name of a table is good and there once. `name_of(i)` may be empty where `optional` says so.
template <typename NameOf>
Status CheckNames(const Message& kind, std::size_t count, bool optional, const FormatLimits& limits,
                  NameOf&& name_of) {
  Array<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(name_of(i));
    if (names[i].empty() && optional) continue;
    if (Status status = CheckName({"{} {}", kind, i}, names[i], limits); !status) return status;
  }
  const std::string_view twice = FindTwice(&names);
  if (!twice.empty()) return Violation("two entries of {} have the name '{}'", kind, twice);
  return {};
}

Status CheckDataConstant(const Message& what, const Constant& constant) {
  const std::optional<std::uint64_t> bytes = TensorBytes(constant.type.dtype, constant.type.dims);
  if (!bytes || constant.raw_bytes != *bytes) {
    return Violation("{} has {} bytes, its type {} takes {}", what, constant.raw_bytes,
                     TypeText(Type{{constant.type}}, {}), bytes ? Format("{}", *bytes) : "more than 2^63");
  }
  return {};
}

Status CheckConstant(std::size_t index, const Module& module, const FormatLimits& limits) {
  const Constant& constant = module.constants[index];
  const Message what = constant.name.empty() ? Message{"constant {}", index}
                                             : Message{"constant {} ('{}')", index, constant.name};
  if (constant.type.kind != TypeKind::kTensor) return Violation("{} is not of a tensor type", what);
  if (Status type = CheckTensorType(what, module, constant.type, limits); !type) return type;
  const bool stored = !constant.stored.view.empty() || constant.codec != kCodecNone;
  if (stored && constant.kind != ConstantKind::kData) {
    return Violation("{} has bytes in the file, but its kind is not data", what);
  }
  if (constant.kind == ConstantKind::kParameter) {
    if (constant.name.empty()) return Violation("{} is a parameter without a name", what);
    if (constant.raw_bytes != 0) return Violation("{} is a parameter with a size; its type says all", what);
    return {};
  }
  const bool is_static = constant.type.rank != kUnknownRank && constant.type.dtype != kUnknownDType &&
                         constant.type.device != kAnyDevice;
  // How large packed weights are is for the kernel that packs them to say.
  const bool computed = constant.kind == ConstantKind::kComputed;
  bool sized = true;
  bool allowed = is_static;
  for (Dim dim : constant.type.dims) {
    sized = sized && dim >= 0;
    allowed = allowed && (dim >= 0 || (computed && dim == kUnknownDim));
  }
  if (!allowed) {
    return Violation("{} has type {}; {}", what, TypeText(Type{{constant.type}}, module.symbols),
                     computed ? "of a computed constant only sizes may be open, as '?'"
                              : "only a parameter's may leave something open");
  }
  if (!sized) {
    if (constant.raw_bytes == 0) return {};
    return Violation("{} has a size in bytes, but its type leaves one open", what);
  }
  if (Status bytes = CheckDataConstant(what, constant); !bytes) return bytes;
  if (constant.kind == ConstantKind::kData && constant.codec == kCodecNone &&
      constant.stored.view.size() != constant.raw_bytes) {
    return Violation("{} has {} bytes in the file, uncompressed it takes {}", what,
                     constant.stored.view.size(), constant.raw_bytes);
  }
  return {};
}

Status CheckKernel(std::size_t index, const KernelImport& kernel, const FormatLimits& limits) {
  if (Status name = CheckName({"kernel {}", index}, kernel.name, limits); !name) return name;
  const Message what{"kernel {} ('{}')", index, kernel.name};
  if (!kernel.debug_name.empty()) {
    if (Status name = CheckName({"the debug name of {}", what}, kernel.debug_name, limits); !name)
      return name;
  }
  Status names = CheckNames({"attribute of {}", what}, kernel.attributes.size(), false, limits,
                            [&](std::size_t i) -> std::string_view { return kernel.attributes[i].name; });
  if (!names) return names;
  for (const Attribute& attribute : kernel.attributes) {
    const auto* text = std::get_if<std::string>(&attribute.value);
    if (text == nullptr) continue;
    Status status = CheckText({"attribute '{}' of {}", attribute.name, what}, *text, limits);
    if (!status) return status;
  }
  if ((kernel.flags & ~std::uint32_t{kKernelObjects | kKernelInPlace}) != 0) {
    char flags[8];
    const auto end = std::to_chars(flags, flags + sizeof(flags), kernel.flags, 16).ptr;
    return Violation("{} has unknown flags 0x{}", what, std::string_view(flags, end - flags));
  }
  if (kernel.alignment != 0 && (!IsPowerOfTwo(kernel.alignment) || kernel.alignment > 4096)) {
    return Violation("{} wants an alignment of {}; it is 0 or a power of two up to 4096", what,
                     kernel.alignment);
  }
  for (std::size_t i = 1; i < kernel.also_written.size(); ++i) {
    if (kernel.also_written[i - 1] >= kernel.also_written[i]) {
      return Violation("{} lists written arguments {} and {} in this order; they ascend", what,
                       kernel.also_written[i - 1], kernel.also_written[i]);
    }
  }
  return {};
}

}  // namespace

Status CheckTables(const Module& module, const FormatLimits& limits) {
  if (Status status = CheckLimit("constants", module.constants.size(), limits.constants); !status)
    return status;
  if (Status status = CheckLimit("kernels", module.kernels.size(), limits.kernels); !status) return status;
  if (Status status = CheckLimit("functions", module.functions.size(), limits.functions); !status)
    return status;
  std::uint64_t words = 0;
  for (const Function& function : module.functions) words += function.code.size();
  if (Status status = CheckLimit("words of code", words, limits.code_words); !status) return status;

  if (Status status = CheckDevices(module, limits); !status) return status;
  Status symbols = CheckNames("symbol", module.symbols.size(), false, limits,
                              [&](std::size_t i) -> std::string_view { return module.symbols[i]; });
  if (!symbols) return symbols;
  if (!module.symbol_limits.empty() && module.symbol_limits.size() != module.symbols.size()) {
    return Violation("there are {} symbol limits for {} symbols", module.symbol_limits.size(),
                     module.symbols.size());
  }
  for (std::size_t i = 0; i < module.symbol_limits.size(); ++i) {
    if (module.symbol_limits[i] < kNoLimit) {
      return Violation("symbol '{}' is at most {}, which is negative", module.symbols[i],
                       module.symbol_limits[i]);
    }
  }
  for (std::size_t i = 0; i < module.strings.size(); ++i) {
    Status status = CheckText({"string {}", i}, module.strings[i], limits);
    if (!status) return status;
  }
  Status keys = CheckNames("metadata", module.metadata.size(), false, limits,
                           [&](std::size_t i) -> std::string_view { return module.metadata[i].first; });
  if (!keys) return keys;
  for (const auto& [key, value] : module.metadata) {
    if (Status status = CheckText({"metadata '{}'", key}, value, limits); !status) return status;
  }
  Status constants = CheckNames("constant", module.constants.size(), true, limits,
                                [&](std::size_t i) -> std::string_view { return module.constants[i].name; });
  if (!constants) return constants;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    if (Status status = CheckConstant(i, module, limits); !status) return status;
  }
  for (std::size_t i = 0; i < module.kernels.size(); ++i) {
    if (Status status = CheckKernel(i, module.kernels[i], limits); !status) return status;
  }
  return {};
}

}  // namespace rewire::verify
