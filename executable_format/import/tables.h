// SPDX-License-Identifier: Apache-2.0
// The tables of a module that importers fill: devices, constants, names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "executable_format/import/tvm.h"
#include "executable_format/module.h"

namespace rewire::tvm {

// What TVM's own allocator aligned tensors to, which its compiled kernels may rely on.
std::uint32_t KernelAlignment(std::string_view tvm_version);

// The index in the module's table of a foreign device, which is added when it is new. Scope "global" is a
// device's ordinary memory. kUnsupported: a device of another machine.
Result<std::uint32_t> AddDevice(Module& module, const DeviceEntry& device);

// A constant with the tensor's bytes, which `owner` keeps alive; they are copied when they are not aligned as
// constants of an executable are.
Constant DataConstant(std::string name, const ForeignTensor& tensor, std::uint32_t device,
                      const std::shared_ptr<const void>& owner);

// Names that are not empty and not used twice: foreign files may repeat or omit them.
class UniqueNames {
 public:
  // `name` itself when it is free, else with "_2", "_3" behind it; `fallback` in place of an empty one.
  std::string Make(const std::string& name, const std::string& fallback);

 private:
  std::unordered_set<std::string> used_;
};

}  // namespace rewire::tvm
