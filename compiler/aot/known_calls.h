// SPDX-License-Identifier: Apache-2.0
//
// KnownCalls: calls of stock kernels on integers that are known while the source is made, such as arithmetic
// of shapes. They are run in the VM, and the source has their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/module.h"

namespace rewire::aot {

struct KnownTensor {
  DLDataType dtype = kUnknownDType;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
};

class KnownCalls {
 public:
  using Results = std::optional<std::vector<KnownTensor>>;

  // The outputs of the call, whose bytes are not read. None if the kernel is not a stock one, is not found
  // here, or fails.
  const Results& Run(const KernelImport& import, const std::vector<KnownTensor>& inputs,
                     const std::vector<KnownTensor>& outputs);

 private:
  std::map<std::string, Results> results_{};  // by the whole call
};

}  // namespace rewire::aot
