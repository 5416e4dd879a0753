// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/sort.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/verify/context.h"

namespace rewire::verify {
namespace {

Status CheckBlob(std::size_t index, const Module& module, const FormatLimits& limits) {
  const DeviceCodeEntry& entry = module.device_code[index];
  if (Status name = CheckName({"device code {}", index}, entry.name, limits); !name) return name;
  const Message what{"device code {} ('{}')", index, entry.name};
  if (entry.form < 1 || entry.form > kMostDeviceCodeForm) {
    return Violation("{} has form {}; forms are 1 to {}", what, entry.form, kMostDeviceCodeForm);
  }
  if (!entry.architecture.empty()) {
    Status name = CheckName({"the architecture of {}", what}, entry.architecture, limits);
    if (!name) return name;
  } else if (static_cast<DeviceCodeForm>(entry.form) == DeviceCodeForm::kCubin) {
    return Violation("{} is machine code without an architecture", what);
  }
  if (entry.constant >= module.constants.size()) {
    return Violation("{} names constant {}, there are {}", what, entry.constant, module.constants.size());
  }
  const Constant& bytes = module.constants[entry.constant];
  if (bytes.kind == ConstantKind::kData && bytes.type.dtype == kUInt8 && bytes.type.rank == 1) return {};
  return Violation("{} is in constant {}, which is not u8[n] with data", what, entry.constant);
}

// Checks one kernel.
class KernelCheck {
 public:
  KernelCheck(std::size_t index, const Module& module, const FormatLimits& limits)
      : module_(module),
        limits_(limits),
        kernel_(module.device_kernels[index]),
        what_{"device kernel {} ('{}')", index, kernel_.name} {}

  Status Run() {
    if (Status status = CheckNames(); !status) return status;
    if (Status status = CheckParameters(); !status) return status;
    if (kernel_.arguments.size() > kMostDeviceArguments) {
      return Violation("{} has {} arguments; the limit is {}", what_, kernel_.arguments.size(),
                       kMostDeviceArguments);
    }
    for (std::size_t i = 0; i < kernel_.arguments.size(); ++i) {
      if (Status status = CheckArgument(i, kernel_.arguments[i]); !status) return status;
    }
    for (std::uint32_t i = 0; i < 3; ++i) {
      Status status = CheckSize("its number of groups", kernel_.groups[i]);
      if (status) status = CheckSize("its number of threads", kernel_.threads[i]);
      if (!status) return status;
    }
    return CheckSize("its shared memory", kernel_.shared_bytes);
  }

 private:
  Status CheckNames() const {
    Status symbol = CheckName({"the symbol of {}", what_}, kernel_.symbol, limits_);
    if (!symbol) return symbol;
    for (const DeviceCodeEntry& entry : module_.device_code) {
      if (entry.name == kernel_.code) return {};
    }
    return Violation("{} is in device code '{}', which does not exist", what_, kernel_.code);
  }

  Status CheckParameters() {
    const std::size_t count = kernel_.parameters.size();
    if (count > kMostDeviceParameters || kernel_.outputs < 1 || kernel_.outputs > count) {
      return Violation("{} has {} parameters and writes {}; it may have {}, and writes at least 1", what_,
                       count, kernel_.outputs, kMostDeviceParameters);
    }
    Array<std::string_view> names;
    const std::uint32_t device = kernel_.parameters[0].type.device;
    for (const DeviceParameter& parameter : kernel_.parameters) {
      if (Status name = CheckName({"a parameter of {}", what_}, parameter.name, limits_); !name) return name;
      names.emplace_back(parameter.name);
      const TypeNode& type = parameter.type;
      const Message which{"parameter '{}' of {}", parameter.name, what_};
      if (type.kind != TypeKind::kTensor) return Violation("{} is not a tensor", which);
      if (Status status = CheckTensorType(which, module_, type, limits_); !status) return status;
      if (type.dtype == kUnknownDType || type.rank == kUnknownRank) {
        return Violation("{} has no dtype or no rank", which);
      }
      if (type.device == kAnyDevice || type.device == kHostDevice || type.device != device) {
        return Violation("{} is not on the one device of the kernel", which);
      }
      for (const Dim dim : type.dims) {
        if (IsSymbol(dim)) symbols_.push_back(std::int64_t{SymbolOf(dim)});
      }
    }
    Sort(symbols_);
    const std::string_view twice = FindTwice(&names);
    if (!twice.empty()) return Violation("two parameters of {} have the name '{}'", what_, twice);
    return {};
  }

  Status CheckArgument(std::size_t index, const DeviceArgument& argument) const {
    const Message which{"argument {}", index};
    switch (argument.kind) {
      case DeviceArgumentKind::kTensor:
        if (argument.parameter < kernel_.parameters.size()) return {};
        return Violation("{}: {} is parameter {}, there are {}", what_, which, argument.parameter,
                         kernel_.parameters.size());
      case DeviceArgumentKind::kInteger:
      case DeviceArgumentKind::kReal:
        if (!IsArgumentDType(argument)) {
          return Violation("{}: {} is not an integer of 8 to 64 bits, or a float of 32 or 64", what_, which);
        }
        if (argument.kind == DeviceArgumentKind::kReal) return {};
        return CheckSize(which, argument.value);
      case DeviceArgumentKind::kLocalMemory:
        return CheckSize(which, argument.value);
    }
    return {};
  }

  // An expression keeps the limits, and its symbols get their sizes from parameters.
  Status CheckSize(const Message& which, const SizeExpression& size) const {
    if (const char* fault = SizeExpressionFault(size.words); fault != nullptr) {
      return Violation("{}: {} {}", what_, which, fault);
    }
    for (std::size_t i = 0; i < size.words.size(); ++i) {
      const auto op = static_cast<SizeOp>(size.words[i]);
      if (op != SizeOp::kNumber && op != SizeOp::kSymbol) continue;
      const std::int64_t operand = size.words[++i];
      if (op == SizeOp::kNumber || IsBound(operand)) continue;
      return Violation("{}: {} uses symbol {}, which is in no parameter's shape", what_, which, operand);
    }
    return {};
  }

  bool IsBound(std::int64_t symbol) const {
    return std::binary_search(symbols_.begin(), symbols_.end(), symbol);
  }

  const Module& module_;
  const FormatLimits& limits_;
  const DeviceKernelEntry& kernel_;
  const Message what_;
  Array<std::int64_t> symbols_;  // in the shapes of parameters, sorted
};

}  // namespace

Status CheckDeviceCode(const Module& module, const FormatLimits& limits) {
  if (Status status = CheckLimit("blobs of device code", module.device_code.size(), limits.device_code);
      !status) {
    return status;
  }
  Status few = CheckLimit("device kernels", module.device_kernels.size(), limits.device_kernels);
  if (!few) return few;
  for (std::size_t i = 0; i < module.device_code.size(); ++i) {
    if (Status status = CheckBlob(i, module, limits); !status) return status;
  }
  Array<std::string_view> names;
  for (std::size_t i = 0; i < module.device_kernels.size(); ++i) {
    const std::string& name = module.device_kernels[i].name;
    if (Status status = CheckName({"device kernel {}", i}, name, limits); !status) return status;
    names.emplace_back(name);
    if (Status status = KernelCheck(i, module, limits).Run(); !status) return status;
  }
  const std::string_view twice = FindTwice(&names);
  if (!twice.empty()) return Violation("two device kernels have the name '{}'", twice);
  return {};
}

Status CheckLoadsOfDeviceCode(const Module& module) {
  if (module.device_code.empty()) return {};
  const Array<std::uint8_t> is_code = ConstantsOfDeviceCode(module);
  for (const Function& function : module.functions) {
    for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
      if (OpcodeOf(function.code[pc]) != Opcode::kLoadConst) continue;
      const std::uint32_t constant = function.code[pc + WordOf(Opcode::kLoadConst, "constant")];
      if (!is_code[constant]) continue;
      return ViolationAt(module, function, pc,
                         {"constant {} is device code, which cannot be loaded", constant});
    }
  }
  return {};
}

}  // namespace rewire::verify
