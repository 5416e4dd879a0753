// SPDX-License-Identifier: Apache-2.0
//
// Custom operators of a host: domains of them, and what the compiler and the linker get of each. A custom
// operator is a kernel made by a factory, which reads the whole node, and which returns its outputs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/operator_schema.h"
#include "rewire/onnxruntime_api/api.h"
#include "rewire/vm/kernel_set.h"

// The host keeps a domain and its operators as long as it uses sessions that were made with them.
struct OrtCustomOpDomain {
  std::string name;
  std::vector<const OrtCustomOp*> operators;
};

namespace rewire::onnxruntime_api {

// CustomOps is the part of session options that has custom operators.
struct CustomOps {
  std::vector<const OrtCustomOpDomain*> domains;
  // Libraries that are closed when neither options nor sessions use them any more.
  std::vector<std::shared_ptr<void>> libraries;

  bool empty() const { return domains.empty(); }
};

// The schemas by which the compiler knows the operators. Several operators of one name are one schema, whose
// inputs take what any of them takes. Errors: kUnsupported for strings, and for operators of one name whose
// outputs' types do not follow an input; kInvalidArgument for more than one output whose type is left open.
Result<std::vector<OperatorSchema>> SchemasOf(const CustomOps& custom_ops);

// Adds the kernels of the operators. They keep the libraries, and the session's config entries.
void AddKernels(const CustomOps& custom_ops, const std::map<std::string, std::string>& config,
                KernelSet* kernels);

}  // namespace rewire::onnxruntime_api
