// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/device_code.h"

#include <cstring>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

// A LaunchSlot is the meaning of one launch tag.
enum class LaunchSlot : std::uint8_t {
  kGroupsX,
  kGroupsY,
  kGroupsZ,
  kThreadsX,
  kThreadsY,
  kThreadsZ,
  kSharedBytes,
};

struct DeviceCode::Kernel {
  struct OnDevice {
    const DeviceApi* api;
    std::int32_t device_id;
    void* kernel;
  };

  DeviceCode* code;
  std::string name;
  Array<DLDataType> arguments;
  Array<LaunchSlot> slots;
  mutable Array<OnDevice> known;  // guarded by the code's mutex
};

namespace {

struct CodeForm {
  std::string_view kind;
  std::string_view format;
  std::uint32_t form;
};
constexpr CodeForm kForms[] = {
    {"opencl", "cl", REWIRE_DEVICE_CODE_OPENCL_C}, {"cuda", "cuda", REWIRE_DEVICE_CODE_CUDA_CPP},
    {"cuda", "ptx", REWIRE_DEVICE_CODE_PTX},       {"cuda", "cubin", REWIRE_DEVICE_CODE_CUBIN},
    {"cuda", "fatbin", REWIRE_DEVICE_CODE_FATBIN},
};

struct Tag {
  std::string_view name;
  LaunchSlot slot;
};
constexpr Tag kTags[] = {
    {"blockIdx.x", LaunchSlot::kGroupsX},   {"blockIdx.y", LaunchSlot::kGroupsY},
    {"blockIdx.z", LaunchSlot::kGroupsZ},   {"threadIdx.x", LaunchSlot::kThreadsX},
    {"threadIdx.y", LaunchSlot::kThreadsY}, {"threadIdx.z", LaunchSlot::kThreadsZ},
};
// Tags with a prefix "tir." or "tirx.", by version.
constexpr std::string_view kSharedTag = "use_dyn_shared_memory";
// Lets the driver start the next launch early. Without it, results are the same.
constexpr std::string_view kEarlyStartTag = "use_programmtic_dependent_launch";

constexpr std::int32_t kMostDeviceTypes = 32;
thread_local std::int32_t t_device_ids[kMostDeviceTypes] = {};

bool IsAddress(DLDataType dtype) { return dtype.code == kDLOpaqueHandle; }

// Writes an argument as the kernel has it, and returns its size in bytes. 0: no such argument is known.
std::uint32_t Narrow(DLDataType dtype, std::uint64_t from, void* to) {
  const bool integer = dtype.code == kDLInt || dtype.code == kDLUInt || dtype == kBool8;
  if (dtype.lanes != 1 || dtype.bits > 64) return 0;
  const auto bytes = static_cast<std::uint32_t>(dtype.bits + 7) / 8;
  if (integer) {
    std::memcpy(to, &from, bytes);  // little-endian: the low bytes
    return bytes;
  }
  if (dtype.code != kDLFloat) return 0;
  if (bytes == sizeof(double)) {
    std::memcpy(to, &from, sizeof(double));
  } else if (bytes == sizeof(float)) {
    double real = 0;
    std::memcpy(&real, &from, sizeof(double));
    const auto value = static_cast<float>(real);
    std::memcpy(to, &value, sizeof(float));
  } else {
    return 0;
  }
  return bytes;
}

int FailLaunch(const std::string& kernel, const Message& what) {
  SetKernelError("RuntimeError", Format("device kernel '{}': {}", kernel, what.Text()).c_str());
  return -1;
}

// The extent of a dimension, which a driver takes as 32 bits. 0 if it is none.
std::uint32_t Extent(std::int64_t value) {
  return value < 1 || value > std::int64_t{0x7fffffff} ? 0 : static_cast<std::uint32_t>(value);
}

// Reads the values of the launch tags. Returns false for an extent that no launch can have. One of 0 is none
// to fail: there is nothing to do then.
bool ReadSlots(const Array<LaunchSlot>& slots, const std::uint64_t* values, RewireLaunch* launch,
               bool* empty) {
  for (std::uint32_t i = 0; i < 3; ++i) launch->groups[i] = launch->group_threads[i] = 1;
  for (const LaunchSlot slot : slots) {
    const auto value = static_cast<std::int64_t>(*values++);
    if (slot == LaunchSlot::kSharedBytes) {
      if (value < 0 || value > std::int64_t{0x7fffffff}) return false;
      launch->shared_bytes = static_cast<std::uint32_t>(value);
      continue;
    }
    if (value == 0) *empty = true;
    if (Extent(value) == 0 && value != 0) return false;
    const auto place = static_cast<std::uint32_t>(slot);
    (place < 3 ? launch->groups[place] : launch->group_threads[place - 3]) = Extent(value);
  }
  return true;
}

}  // namespace

void ChooseLaunchDevice(std::int32_t device_type, std::int32_t device_id) {
  if (device_type >= 0 && device_type < kMostDeviceTypes) t_device_ids[device_type] = device_id;
}

Status DeviceCode::AddKernel(const tvm::DeviceKernel& source) {
  auto kernel = std::make_unique<Kernel>();
  kernel->code = this;
  kernel->name = source.name;
  kernel->arguments = source.arguments;
  if (source.has_tensor_maps) {
    return Fail(StatusCode::kUnsupported, "its device kernel '{}' takes tensor maps, which are not made here",
                source.name);
  }
  for (const std::string& tag : source.launch_tags) {
    const std::string_view plain =
        std::string_view(tag).substr(tag.starts_with("tir") ? tag.find('.') + 1 : 0);
    if (plain == kEarlyStartTag) continue;
    const Tag* known = nullptr;
    for (const Tag& each : kTags) {
      if (each.name == plain) known = &each;
    }
    if (known == nullptr && plain != kSharedTag) {
      return Fail(StatusCode::kUnsupported,
                  "its device kernel '{}' is launched with '{}', which is not known here", source.name, tag);
    }
    kernel->slots.push_back(known == nullptr ? LaunchSlot::kSharedBytes : known->slot);
  }
  if (kernel->arguments.size() + kernel->slots.size() > kMostArguments) {
    return Fail(StatusCode::kUnsupported, "its device kernel '{}' has {} arguments, expected at most {}",
                source.name, kernel->arguments.size() + kernel->slots.size(), kMostArguments);
  }
  kernels_.push_back(std::move(kernel));
  return {};
}

Result<std::unique_ptr<DeviceCode>> DeviceCode::Make(const tvm::DeviceModule& module) {
  std::unique_ptr<DeviceCode> made(new DeviceCode);
  for (const CodeForm& each : kForms) {
    if (each.kind == module.kind && each.format == module.format) made->form_ = each.form;
  }
  if (made->form_ == 0) {
    return Fail(StatusCode::kUnsupported,
                "its device code is of kind '{}', format '{}', which is not known here", module.kind,
                module.format);
  }
  made->kind_ = module.kind;
  made->device_type_ = module.kind == "cuda" ? kDLCUDA : kDLOpenCL;
  made->code_.assign(reinterpret_cast<const char*>(module.code.data()), module.code.size());
  for (const tvm::DeviceKernel& kernel : module.kernels) {
    if (Status added = made->AddKernel(kernel); !added) return Forward(added);
  }
  return made;
}

DeviceCode::~DeviceCode() = default;

const DeviceCode::Kernel* DeviceCode::Find(std::string_view name) const {
  for (const std::unique_ptr<Kernel>& kernel : kernels_) {
    if (kernel->name == name) return kernel.get();
  }
  return nullptr;
}

Array<std::string> DeviceCode::Names() const {
  Array<std::string> names;
  for (const std::unique_ptr<Kernel>& kernel : kernels_) names.push_back(kernel->name);
  return names;
}

Result<std::shared_ptr<const LoadedModule>> DeviceCode::LoadOn(const DeviceApi& api, DLDevice device) {
  for (const std::shared_ptr<const LoadedModule>& each : loaded_) {
    if (each->IsOn(api, device)) return each;
  }
  // The string's zero byte is not counted.
  Result<std::shared_ptr<const LoadedModule>> module = LoadedModule::Load(
      api, device, form_, {reinterpret_cast<const std::byte*>(code_.data()), code_.size()});
  if (module) loaded_.push_back(*module);
  return module;
}

Result<void*> DeviceCode::KernelOn(const Kernel& kernel, const DeviceApi& api, DLDevice device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Kernel::OnDevice& each : kernel.known) {
    if (each.api == &api && each.device_id == device.device_id) return each.kernel;
  }
  const Result<std::shared_ptr<const LoadedModule>> module = LoadOn(api, device);
  if (!module) return Forward(module);
  Result<void*> found = (*module)->Find(kernel.name.c_str());
  if (found) kernel.known.push_back({&api, device.device_id, *found});
  return found;
}

int DeviceCode::Launch(const Kernel& kernel, const std::uint64_t* values, std::int32_t count) {
  const std::uint32_t expected = kernel.arguments.size() + kernel.slots.size();
  if (count < 0 || static_cast<std::uint32_t>(count) != expected) {
    return FailLaunch(kernel.name, {"it is given {} values, expected {}", count, expected});
  }
  DeviceCode& code = *kernel.code;
  const DLDevice device = MakeDevice(code.device_type_, t_device_ids[code.device_type_]);
  const DeviceApi* api = nullptr;
  void* stream = nullptr;
  if (KernelApi()->device(device, &api, &stream) != 0) return -1;
  RewireLaunch launch{};
  bool empty = false;
  if (!ReadSlots(kernel.slots, values + kernel.arguments.size(), &launch, &empty)) {
    return FailLaunch(kernel.name, "its launch has a size below 0 or above 2^31");
  }
  if (empty) return 0;
  RewireLaunchArgument given[kMostArguments];
  std::uint64_t narrow[kMostArguments];
  for (std::uint32_t i = 0; i < kernel.arguments.size(); ++i) {
    RewireLaunchArgument& argument = given[i];
    if (IsAddress(kernel.arguments[i])) {
      argument.kind = REWIRE_LAUNCH_ADDRESS;
      argument.bytes = 0;
      argument.u.address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(values[i]));
      continue;
    }
    argument.kind = REWIRE_LAUNCH_VALUE;
    argument.bytes = Narrow(kernel.arguments[i], values[i], &narrow[i]);
    argument.u.value = &narrow[i];
    if (argument.bytes == 0) {
      return FailLaunch(kernel.name,
                        {"argument {} is {}, which cannot be passed", i, DTypeName(kernel.arguments[i])});
    }
  }
  const Result<void*> found = code.KernelOn(kernel, *api, device);
  if (!found) return FailLaunch(kernel.name, found.error().message());
  launch.kernel = *found;
  launch.argument_count = kernel.arguments.size();
  launch.arguments = given;
  const int failed = api->launch(api->context, device, &launch, stream);
  if (failed == REWIRE_DEVICE_OK) return 0;
  return FailLaunch(kernel.name, DeviceFailure(*api, device, failed).error().message());
}

Status RefuseModules(const std::string& kinds) {
  return Fail(StatusCode::kUnsupported,
              "it carries modules of the kind {}, for which there is no loader; build it for the CPU, OpenCL "
              "or CUDA, without external code generators",
              kinds);
}

Result<Array<std::unique_ptr<DeviceCode>>> MakeDeviceCode(const Array<tvm::DeviceModule>& modules) {
  Array<std::unique_ptr<DeviceCode>> made;
  for (const tvm::DeviceModule& module : modules) {
    Result<std::unique_ptr<DeviceCode>> code = DeviceCode::Make(module);
    if (!code) return Forward(code);
    made.push_back(std::move(*code));
  }
  return made;
}

std::string DeviceCodeText(const Array<std::unique_ptr<DeviceCode>>& code) {
  std::string text;
  for (const std::unique_ptr<DeviceCode>& each : code) {
    text += Format("{}{}", text.empty() ? ", with device code for " : " and ", each->kind());
  }
  return text;
}

}  // namespace rewire
