// SPDX-License-Identifier: Apache-2.0
//
// Reads a .tflite file as a model of operators of the domain "tflite" (operators/tflite), so that all that
// comes behind is the same as for ONNX.
//
// A node has the operator's inputs first, then scale and zero point of each input, then those of each output.
// What a tensor lacks is left out. Variables become inputs and outputs of the graph: READ_VARIABLE reads the
// input, and what ASSIGN_VARIABLE has stored last is the output "NAME.next".
#pragma once

#include <string>

#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"

namespace rewire::compiler {

inline constexpr char kTfliteDomain[] = "tflite";

// True if these are the first bytes of a .tflite file, whole or not.
bool IsTflite(Span<const std::byte> file);

// Errors: kInvalidFile with the place for what does not hold together; kUnsupported for what cannot be read.
// `*model` has the first subgraph. Operators are judged later, where they are lowered.
Status ReadTflite(const SharedBytes& file, onnx::ModelProto* model);

}  // namespace rewire::compiler
