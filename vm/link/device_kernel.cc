// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/device_kernel.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/max_rank.h"
#include "rewire/base/message.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

constexpr std::int64_t kMostExtent = 0x7fffffff;  // drivers take 32 bits

struct DeviceKernel {
  Executable executable;
  const DeviceKernelEntry& entry;
  std::shared_ptr<const LoadedModule> loaded;
  const DeviceApi* api;
  DLDevice device;
  void* kernel;
  Array<RewireKernelArgument> arguments;  // of the row
  RewireKernelRow row;
};

// One launch.
class Launch {
 public:
  explicit Launch(const DeviceKernel& kernel) : kernel_(kernel), entry_(kernel.entry) {}

  int Run(const RewireFFIAny* args, std::int32_t count) {
    if (static_cast<std::uint32_t>(count) != entry_.parameters.size()) {
      return Reject({"{} arguments are given, expected {}", count, entry_.parameters.size()});
    }
    for (std::uint32_t i = 0; i < entry_.parameters.size(); ++i) {
      if (!TakeTensor(i, args[i])) return -1;
    }
    bool empty = false;
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (!Extent(entry_.groups[i], 0, &launch_.groups[i])) return -1;
      if (!Extent(entry_.threads[i], 1, &launch_.group_threads[i])) return -1;
      empty = empty || launch_.groups[i] == 0;
    }
    if (empty) return 0;  // there is nothing to do
    if (!Extent(entry_.shared_bytes, 0, &launch_.shared_bytes)) return -1;
    for (std::uint32_t i = 0; i < entry_.arguments.size(); ++i) {
      if (!MakeArgument(i)) return -1;
    }
    launch_.kernel = kernel_.kernel;
    launch_.argument_count = static_cast<std::uint32_t>(entry_.arguments.size());
    launch_.arguments = given_;
    const DeviceApi* api = nullptr;
    void* stream = nullptr;
    if (KernelApi()->device(kernel_.device, &api, &stream) != 0) return -1;
    const int failed = api->launch(api->context, kernel_.device, &launch_, stream);
    if (failed == REWIRE_DEVICE_OK) return 0;
    return Reject(DeviceFailure(*api, kernel_.device, failed).error().message());
  }

 private:
  int Reject(const Message& what) const {
    SetKernelError("ValueError", Format("device kernel '{}': {}", entry_.name, what).c_str());
    return -1;
  }

  bool TakeTensor(std::uint32_t index, const RewireFFIAny& arg) {
    const DeviceParameter& parameter = entry_.parameters[index];
    const DLTensor* tensor = RewireTensorOf(&arg);
    tensors_[index] = tensor;
    const Message which{"argument {} ('{}')", index, parameter.name};
    if (tensor == nullptr) {
      Reject({"{} is no tensor", which});
      return false;
    }
    if (!IsSameDevice(tensor->device, kernel_.device)) {
      const auto text = [](DLDevice device) {
        return DeviceText({DeviceTypeOf(device), device.device_id, ""});
      };
      Reject({"{} is on {}, expected {}", which, text(tensor->device), text(kernel_.device)});
      return false;
    }
    bool fits = tensor->dtype == parameter.type.dtype && tensor->ndim == parameter.type.rank;
    for (std::int32_t i = 0; fits && i < tensor->ndim; ++i) {
      const Dim wanted = parameter.type.dims[static_cast<std::uint32_t>(i)];
      const std::int64_t size = tensor->shape[i];
      if (!IsSymbol(wanted)) {
        fits = wanted == kUnknownDim || wanted == size;
        continue;
      }
      fits = BindSymbol(SymbolOf(wanted), size);
    }
    if (!fits || !IsContiguous(*tensor)) {
      Type type;
      type.nodes.push_back(parameter.type);
      type.nodes[0].device = kHostDevice;  // which has been compared
      Reject({"{} is {}, expected {}{}", which, TensorText(*tensor),
              TypeText(type, kernel_.executable.module().symbols),
              fits ? " without gaps" : ", where a name stands for one size in all arguments"});
      return false;
    }
    return true;
  }

  // False if the symbol has another size already.
  bool BindSymbol(std::uint32_t symbol, std::int64_t size) {
    for (std::uint32_t i = 0; i < symbol_count_; ++i) {
      if (symbols_[i].symbol == symbol) return symbols_[i].size == size;
    }
    symbols_[symbol_count_++] = {symbol, size};
    return true;
  }

  bool Evaluate(const SizeExpression& size, std::int64_t* value) const {
    return EvaluateSize(size.words, {symbols_, symbol_count_}, value);
  }

  // ValueText says in an error what a size or an argument is.
  static std::string ValueText(bool known, std::int64_t value) {
    return known ? Format("{}", value) : "more than 2^63, or divided by 0";
  }

  bool Extent(const SizeExpression& size, std::int64_t least, std::uint32_t* extent) const {
    std::int64_t value = 0;
    const bool known = Evaluate(size, &value);
    if (!known || value < least || value > kMostExtent) {
      Reject({"its launch has a size of {}, expected {} to 2^31 - 1", ValueText(known, value), least});
      return false;
    }
    *extent = static_cast<std::uint32_t>(value);
    return true;
  }

  // The tensor's size as an argument tells it: 0 if that has too few bits for it.
  static std::uint32_t KnownBytes(const DLTensor& tensor) {
    const Span<const std::int64_t> shape(tensor.shape, static_cast<std::size_t>(tensor.ndim));
    const std::uint64_t bytes = TensorBytes(tensor.dtype, shape).value_or(0);
    return bytes >> 32 == 0 ? static_cast<std::uint32_t>(bytes) : 0;
  }

  bool MakeArgument(std::uint32_t index) {
    const DeviceArgument& argument = entry_.arguments[index];
    RewireLaunchArgument& given = given_[index];
    given.kind = REWIRE_LAUNCH_VALUE;
    given.u.value = &values_[index];
    switch (argument.kind) {
      case DeviceArgumentKind::kTensor: {
        const DLTensor& tensor = *tensors_[argument.parameter];
        given.kind = REWIRE_LAUNCH_ADDRESS;
        given.bytes = KnownBytes(tensor);
        given.u.address = static_cast<char*>(tensor.data) + tensor.byte_offset;
        return true;
      }
      case DeviceArgumentKind::kInteger:
        return MakeInteger(index, argument);
      case DeviceArgumentKind::kReal:
        given.bytes = argument.dtype.bits / 8;
        if (given.bytes == sizeof(double)) {
          std::memcpy(&values_[index], &argument.real, sizeof(double));
        } else {
          const auto value = static_cast<float>(argument.real);
          std::memcpy(&values_[index], &value, sizeof(float));
        }
        return true;
      case DeviceArgumentKind::kLocalMemory:
        given.kind = REWIRE_LAUNCH_SHARED;
        return Extent(argument.value, 1, &given.bytes);
    }
    return false;
  }

  bool MakeInteger(std::uint32_t index, const DeviceArgument& argument) {
    std::int64_t value = 0;
    const bool known = Evaluate(argument.value, &value);
    const std::uint32_t bits = argument.dtype.bits;
    const bool is_signed = argument.dtype.code == kDLInt;
    // Only the sign remains above the bits of the type.
    const std::int64_t above = bits == 64 && !is_signed ? value >> 63 : value >> (bits - is_signed);
    if (!known || (above != 0 && !(is_signed && above == -1))) {
      Reject({"argument {} of its launch is {}, which {} cannot hold", index, ValueText(known, value),
              DTypeName(argument.dtype)});
      return false;
    }
    values_[index] = static_cast<std::uint64_t>(value);  // little-endian: the low bytes are the number
    given_[index].bytes = bits / 8;
    return true;
  }

  const DeviceKernel& kernel_;
  const DeviceKernelEntry& entry_;
  RewireLaunch launch_{};
  const DLTensor* tensors_[kMostDeviceParameters];
  SymbolSize symbols_[kMostDeviceParameters * kMaxRank];
  std::uint32_t symbol_count_ = 0;
  RewireLaunchArgument given_[kMostDeviceArguments];
  std::uint64_t values_[kMostDeviceArguments];
};

int Call(void* handle, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* /*result*/) {
  return Launch(*static_cast<const DeviceKernel*>(handle)).Run(args, count);
}

std::int32_t NoWorkspace(void* /*handle*/, const DLTensor* const* /*tensors*/, std::int32_t /*count*/,
                         std::uint64_t* /*blocks*/) {
  return 0;
}

}  // namespace

PackedFunction MakeDeviceKernel(const Executable& executable, const DeviceKernelEntry& entry,
                                const LinkedDevice& device, std::shared_ptr<const LoadedModule> loaded,
                                void* kernel) {
  std::shared_ptr<DeviceKernel> made(
      new DeviceKernel{executable, entry, std::move(loaded), device.api, device.device, kernel, {}, {}});
  for (const DeviceParameter& parameter : entry.parameters) {
    RewireKernelArgument argument{};
    argument.name = parameter.name.data();
    argument.name_bytes = static_cast<std::uint8_t>(std::min<std::size_t>(parameter.name.size(), 255));
    const bool written = made->arguments.size() + entry.outputs >= entry.parameters.size();
    argument.flags = written ? REWIRE_ARGUMENT_WRITTEN : 0;
    made->arguments.push_back(argument);
  }
  made->row.arguments = made->arguments.data();
  made->row.argument_count = static_cast<std::uint32_t>(made->arguments.size());
  made->row.workspace = NoWorkspace;
  PackedFunction function;
  function.call = Call;
  function.handle = made.get();
  function.row = &made->row;
  function.workspace = NoWorkspace;
  function.owner = std::move(made);
  return function;
}

}  // namespace rewire
