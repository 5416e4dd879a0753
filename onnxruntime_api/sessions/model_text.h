// SPDX-License-Identifier: Apache-2.0
//
// ModelText: what an ONNX file declares of its inputs and outputs. It is read from the file's bytes without
// touching weights, because executables do not keep it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/onnxruntime_api/values/type_info.h"

namespace rewire::onnxruntime_api {

struct DeclaredValue {
  std::string name;
  OrtTypeInfo type;
};

struct ModelText {
  std::vector<DeclaredValue> inputs;       // those that are no initializers, too
  std::vector<DeclaredValue> overridable;  // those that are, and that a run may give
  std::vector<DeclaredValue> outputs;
  std::set<std::string> initializers;
  std::set<std::string> external;                            // initializers whose elements lie in other files
  std::set<std::string> dims;                                // names of dimensions of inputs and outputs
  std::map<std::string, std::set<std::string>> denotations;  // names of dimensions by their denotation
};

// Returns what stands before the damage if the bytes are damaged: the compiler reads them afterwards, and
// reports what is wrong.
ModelText ReadModelText(Span<const std::byte> model);

}  // namespace rewire::onnxruntime_api
