// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "rewire/executable_format/import/relay_file.h"
#include "rewire/executable_format/import/relay_function.h"
#include "rewire/executable_format/import/result_types.h"
#include "rewire/executable_format/import/stream.h"
#include "rewire/executable_format/import/tables.h"

namespace rewire::tvm {
namespace {

// The value of a tensor of one integer.
std::optional<std::int64_t> ScalarOf(const ForeignTensor& tensor) {
  const auto read = [&](auto value) {
    std::memcpy(&value, tensor.bytes.data(), sizeof(value));
    return static_cast<std::int64_t>(value);
  };
  if (tensor.dtype == kInt64 && tensor.bytes.size() == 8) return read(std::int64_t{});
  if (tensor.dtype == kInt32 && tensor.bytes.size() == 4) return read(std::int32_t{});
  return std::nullopt;
}

Status AddDevices(const RelayFile& file, Module& module, RelayTables& tables) {
  const DeviceEntry& host = file.devices[file.host_device];
  if (host.type != kDLCPU) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("the host is a device of type {}, not a CPU", host.type));
  }
  DeviceTable table(&module);
  for (const DeviceEntry& device : file.devices) {
    DeviceEntry scoped = device;
    if (device.type == kDLCPU) scoped.id = 0;  // the host's memory whatever the id
    Result<std::uint32_t> plain = table.Add({scoped.type, scoped.id, ""});
    if (!plain) return Forward(plain);
    Result<std::uint32_t> with_scope = table.Add(scoped);
    if (!with_scope) return Forward(with_scope);
    tables.devices.push_back(*plain);
    tables.scoped_devices.push_back(*with_scope);
  }
  return {};
}

void AddConstants(const RelayFile& file, const std::shared_ptr<const void>& owner, Module& module,
                  RelayTables& tables) {
  for (std::size_t i = 0; i < file.constants.size(); ++i) {
    const std::uint32_t device = tables.devices[static_cast<std::size_t>(file.constant_devices[i])];
    std::optional<std::int64_t> scalar;
    if (const auto* tensor = std::get_if<ForeignTensor>(&file.constants[i])) {
      module.constants.push_back(DataConstant("", *tensor, device, owner));
      if (device == kHostDevice) scalar = ScalarOf(*tensor);
    } else {
      Constant parameter;
      parameter.kind = ConstantKind::kParameter;
      parameter.name = std::get<std::string>(file.constants[i]);
      parameter.type = UnrankedTensorType(kUnknownDType, device).nodes[0];
      module.constants.push_back(std::move(parameter));
    }
    tables.is_scalar.push_back(scalar.has_value());
    tables.scalars.push_back(scalar.value_or(0));
  }
}

}  // namespace

Result<Module> ImportRelayExecutable(const SharedBytes& bytes) {
  Result<RelayFile> file = ReadRelayFile(bytes.view);
  if (!file) return Forward(file);
  Module module;
  RelayTables tables{*file, KernelAlignment(file->version), {}, {}, {}, {}, 0};
  if (Status devices = AddDevices(*file, module, tables); !devices) return Forward(devices);
  AddConstants(*file, bytes.owner, module, tables);
  for (const std::string& name : file->kernels) {
    KernelImport kernel;
    kernel.name = name;
    kernel.alignment = tables.alignment;
    module.kernels.push_back(std::move(kernel));
  }
  module.strings.emplace_back("no clause of a match applies");
  for (const RelayFunction& source : file->functions) {
    if (source.name == kInitFunction) {
      return Fail(StatusCode::kUnsupported,
                  fmt::format("a function is called '{}', which has a meaning of its own here", source.name));
    }
    Result<Function> function = TranslateRelayFunction(source, tables, &module.strings);
    if (!function) return Forward(function);
    module.functions.push_back(std::move(*function));
  }
  InferResults(&module);
  module.metadata.emplace_back("source", "Relay VM executable of TVM " + file->version);
  return module;
}

}  // namespace rewire::tvm
