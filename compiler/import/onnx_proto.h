// SPDX-License-Identifier: Apache-2.0
// The generated protobuf classes of ONNX, which do not compile without warnings.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop
