// SPDX-License-Identifier: Apache-2.0
// Nodes and tensors as text, for tests that list many.
#pragma once

#include <string>
#include <string_view>

#include "rewire/compiler/import/onnx_proto.h"

namespace rewire::test {

// Adds the node that a line such as
//
//     y, where = MaxPool(x) <kernel_shape = [2, 2], ceil_mode = 1, auto_pad = "VALID">
//
// describes. An input of "" is left out. A number with a point is a float. A list may be
// of strings, too. Any mistake fails the test.
onnx::NodeProto* AddNodeText(onnx::GraphProto* graph, std::string_view text);

// Reads "f32[2, 3] = 1 2 3 4 5 nan", with a name of DTypeName: the numbers of all elements, or one for all.
onnx::TensorProto TensorOfText(std::string_view text);

}  // namespace rewire::test
