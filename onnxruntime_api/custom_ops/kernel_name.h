// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rewire::onnxruntime_api {

// The packed function of a custom operator, by which a compiled model names it.
std::string KernelName(const std::string& domain, const std::string& name);

}  // namespace rewire::onnxruntime_api
