// SPDX-License-Identifier: Apache-2.0
// Changes to an ONNX model that leave it a protobuf: numbers, names, operators, nodes, dimensions. Bytes
// changed at random mostly end in the parser.
#pragma once

#include <cstdint>

#include "rewire/compiler/import/onnx_proto.h"

namespace rewire::test {

// Makes a few changes; the same seed makes the same ones.
void MutateModel(onnx::ModelProto* model, std::uint32_t seed);

}  // namespace rewire::test
