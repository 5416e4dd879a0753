// SPDX-License-Identifier: Apache-2.0
//
// OrtKernelInfo: the node for which a custom operator makes a kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/onnxruntime_api/values/type_info.h"
#include "rewire/onnxruntime_api/values/value.h"
#include "rewire/vm/kernel/ffi_abi.h"

struct OrtKernelInfo {
  using Attribute =
      std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                   std::vector<std::string>, std::shared_ptr<rewire::onnxruntime_api::ValueBody>>;
  struct End {
    std::string name;  // empty: the node leaves it out
    OrtTypeInfo type;
  };

  std::string name, domain, type;
  std::int64_t version = 1;
  std::vector<End> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  std::map<std::string, std::string> config;  // of the session
};

namespace rewire::onnxruntime_api {

// The node of a factory's arguments (OperatorSchema::AttributesAs::kNode). Anyone may have written the
// executable that they come from. Errors: kInvalidFile.
Result<std::shared_ptr<OrtKernelInfo>> ReadKernelInfo(const RewireFFIAny* args, std::int32_t count);

}  // namespace rewire::onnxruntime_api
