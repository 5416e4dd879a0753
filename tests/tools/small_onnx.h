// SPDX-License-Identifier: Apache-2.0
// ONNX models of one node, written by hand in the encoding of protobuf, so that tests of tools need no
// library.
#pragma once

#include <string>

namespace rewire::test {

// A node of `domain` (empty: ONNX's own), y = op(x), where x and y are f32[N, 2].
std::string SmallOnnx(const std::string& op, const std::string& domain = {});

}  // namespace rewire::test
