// SPDX-License-Identifier: Apache-2.0
//
// Initializers whose elements the host gives in place of the model's, and those that become inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/import/model_file.h"
#include "rewire/compiler/overridable.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::compiler {

using GivenInitializers = std::map<std::string, HostTensor>;

// The elements of CompileOptions::initializers, in the tensors' own memory where that is aligned for the
// element type. Errors: kInvalidArgument for a name that is none of the graph's initializers, and for a
// tensor of another dtype, that is strided, or that is not in host memory.
Result<GivenInitializers> ReadInitializers(const CompileOptions& options, const onnx::GraphProto& graph);

// The initializers that the graph lists among its inputs, in the order of the inputs. None in models before
// IR version 4, which list all of them and mean constants.
std::vector<OverridableInitializer> OverridableOf(const ModelFile& model);

// Errors: kInvalidArgument if CompileOptions::overridden has a name that is not one of those, or one whose
// elements are given.
Status CheckOverridden(const CompileOptions& options, const ModelFile& model);

}  // namespace rewire::compiler
