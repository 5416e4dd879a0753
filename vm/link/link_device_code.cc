// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/link_device_code.h"

#include <new>
#include <string>
#include <utility>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/link/device_kernel.h"
#include "rewire/vm/link/stored_constants.h"

namespace rewire {
namespace {

// "sm_90": 90. "sm_90a" has code for this architecture alone: the letter is `exact`. 0: another spelling.
std::uint32_t Generation(std::string_view architecture, bool* exact) {
  std::uint32_t number = 0;
  std::size_t at = architecture.find('_') + 1;  // 0 if there is none
  if (at == 0) return 0;
  for (; at < architecture.size() && number < 1000; ++at) {
    const char digit = architecture[at];
    if (digit < '0' || digit > '9') break;
    number = 10 * number + static_cast<std::uint32_t>(digit - '0');
  }
  *exact = at != architecture.size();
  return number;
}

constexpr std::uint32_t kFormFit = 10000;  // above every generation

}  // namespace

std::uint32_t FitOfDeviceCode(const DeviceCodeEntry& entry, const RewireDeviceProperties& device) {
  if (device.code_forms != 0 && (device.code_forms >> entry.form & 1) == 0) return 0;
  const std::string_view own = device.architecture != nullptr ? device.architecture : "";
  const bool same = entry.architecture == own;
  bool exact = false, unused = false;
  const std::uint32_t wanted = Generation(entry.architecture, &exact);
  const std::uint32_t has = Generation(own, &unused);
  const bool known = wanted != 0 && has != 0;
  switch (static_cast<DeviceCodeForm>(entry.form)) {
    case DeviceCodeForm::kCubin:
      // Machine code runs on later devices of the same major generation, which is all digits but the last.
      if (same) return 6 * kFormFit;
      if (!known || exact || wanted > has || wanted / 10 != has / 10) return 0;
      return 5 * kFormFit + wanted;
    case DeviceCodeForm::kFatbin:
      return entry.architecture.empty() || same ? 4 * kFormFit : 0;
    case DeviceCodeForm::kPtx:
      if (entry.architecture.empty()) return 3 * kFormFit;
      return same || (known && !exact && wanted <= has) ? 3 * kFormFit + wanted : 0;
    case DeviceCodeForm::kSpirV:
      return entry.architecture.empty() || same ? 2 * kFormFit : 0;
    case DeviceCodeForm::kOpenClC:
    case DeviceCodeForm::kCudaCpp:
      break;
  }
  if (same && !own.empty()) return kFormFit + 1;
  return entry.architecture.empty() ? kFormFit : 0;
}

Status AllowDeviceCode(const Module& module, const LinkOptions& options) {
  if (module.device_kernels.empty() || options.trust_device_code) return {};
  return Fail(
      StatusCode::kLinkFailed,
      "the executable has {} kernels of its own for devices, such as '{}': native code, which nothing "
      "checks; if you trust it, set LinkOptions::trust_device_code (--trust-device-code)",
      module.device_kernels.size(), module.device_kernels[0].name);
}

const DeviceKernelEntry* DeviceCodeLinker::Find(std::string_view name) const {
  for (const DeviceKernelEntry& kernel : code_.module().device_kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

Result<PackedFunction> DeviceCodeLinker::Make(const DeviceKernelEntry& kernel, const KernelImport& import) {
  const Message what{"kernel '{}' of the executable", kernel.name};
  if (!import.attributes.empty()) {
    return Fail(StatusCode::kLinkFailed, "{}: its import has attributes, which device code does not take",
                what);
  }
  const std::uint32_t device = kernel.parameters[0].type.device;
  const Result<std::shared_ptr<const LoadedModule>> module = Load(kernel.code, device);
  if (!module) return Forward(module, what);
  const Result<void*> found = (*module)->Find(kernel.symbol.c_str());
  if (!found) return Forward(found, what);
  return MakeDeviceKernel(code_.executable, kernel, code_.devices[device], *module, *found);
}

Result<std::shared_ptr<const LoadedModule>> DeviceCodeLinker::Load(std::string_view name,
                                                                   std::uint32_t device) {
  for (const Loaded& each : loaded_) {
    if (each.name == name && each.device == device) return each.module;
  }
  const Module& module = code_.module();
  const LinkedDevice& linked = code_.devices[device];
  RewireDeviceProperties properties{};
  properties.struct_size = sizeof(properties);
  const bool told =
      linked.api->properties != nullptr &&
      linked.api->properties(linked.api->context, linked.device.device_id, &properties) == REWIRE_DEVICE_OK;
  if (!told) properties = {};

  std::string forms;
  for (const DeviceCodeEntry& entry : module.device_code) {
    if (entry.name != name) continue;
    Append(&forms, {"{}{}{}{}", forms.empty() ? "" : ", ", DeviceCodeFormName(entry.form),
                    entry.architecture.empty() ? "" : " for ", entry.architecture});
  }
  std::string refused;
  Array<std::uint8_t> tried(module.device_code.size());
  for (;;) {
    std::uint32_t best = 0, best_fit = 0;
    for (std::uint32_t i = 0; i < tried.size(); ++i) {
      if (tried[i] != 0 || module.device_code[i].name != name) continue;
      const std::uint32_t fit = FitOfDeviceCode(module.device_code[i], properties);
      if (fit <= best_fit) continue;
      best = i;
      best_fit = fit;
    }
    if (best_fit == 0) {
      return Fail(StatusCode::kLinkFailed, "{} takes none of the code '{}' ({}){}",
                  DeviceText(module.devices[device]), name, forms, refused);
    }
    tried[best] = 1;
    Result<std::shared_ptr<const LoadedModule>> loaded = LoadBlob(module.device_code[best], linked);
    if (loaded) loaded_.push_back({name, device, *loaded});
    // Other failures are no memory, or a damaged file.
    if (loaded || loaded.error().code() != StatusCode::kRuntimeFailed) return loaded;
    Append(&refused,
           {"\n    {}: {}", DeviceCodeFormName(module.device_code[best].form), loaded.error().message()});
  }
}

Result<std::shared_ptr<const LoadedModule>> DeviceCodeLinker::LoadBlob(const DeviceCodeEntry& entry,
                                                                       const LinkedDevice& device) {
  const Constant& constant = code_.module().constants[entry.constant];
  const Message what{"device code '{}'", entry.name};
  if (Status ok = CheckStoredSize(constant); !ok) return Forward(ok, what);
  if (Status ok = meter_->ChargeBytes(constant.raw_bytes); !ok) return Forward(ok, what);
  // With a zero byte behind it: PTX is text that ends with one.
  const std::unique_ptr<std::byte[]> owner(new (std::nothrow) std::byte[constant.raw_bytes + 1]);
  std::byte* raw = owner.get();
  if (raw == nullptr) return Fail(StatusCode::kOutOfMemory, "{}: no memory", what);
  raw[constant.raw_bytes] = std::byte{0};
  if (Status ok = DecodeStored(constant, code_.codecs, {raw, constant.raw_bytes}); !ok) {
    return Forward(ok, what);
  }
  const bool is_ptx = static_cast<DeviceCodeForm>(entry.form) == DeviceCodeForm::kPtx;
  return LoadedModule::Load(*device.api, device.device, entry.form,
                            {raw, static_cast<std::size_t>(constant.raw_bytes + is_ptx)});
}

}  // namespace rewire
