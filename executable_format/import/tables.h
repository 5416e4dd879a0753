// SPDX-License-Identifier: Apache-2.0
// The tables of a module that importers fill: devices, constants, names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "rewire/executable_format/import/tvm.h"
#include "rewire/executable_format/module.h"

namespace rewire::tvm {

// The alignment of tensors in TVM's own allocator, which its compiled kernels may rely on.
std::uint32_t KernelAlignment(std::string_view tvm_version);

// Fills a module's table of devices. Finding a device takes constant time.
class DeviceTable {
 public:
  // `module` must outlive this object. Its existing devices are known.
  explicit DeviceTable(Module* module);

  // Returns the index of a foreign device, and adds it if it is new. The scope "global" is a device's
  // ordinary memory. Errors: kInvalidFile; kUnsupported for a device of another machine.
  Result<std::uint32_t> Add(const DeviceEntry& device);

 private:
  Module& module_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::uint32_t> indices_;
};

// Makes a constant of the tensor's bytes, which `owner` keeps alive. They are copied if they are not aligned
// as an executable requires.
Constant DataConstant(std::string name, const ForeignTensor& tensor, std::uint32_t device,
                      const std::shared_ptr<const void>& owner);

// Makes names unique and not empty, because foreign files may repeat or omit them.
class UniqueNames {
 public:
  // Returns `name` if it is unused, otherwise with "_2", "_3" and so on appended. `fallback` replaces an
  // empty name.
  std::string Make(const std::string& name, const std::string& fallback);

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, std::uint32_t> next_;  // for each repeated name: the number to try first
};

}  // namespace rewire::tvm
