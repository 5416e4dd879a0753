// SPDX-License-Identifier: Apache-2.0
// Models that do not say how many features they take.
#pragma once

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {

// The model with the number of its first input's columns left open.
inline onnx::ModelProto WithOpenFeatures(onnx::ModelProto model) {
  onnx::TypeProto* type = model.mutable_graph()->mutable_input(0)->mutable_type();
  type->mutable_tensor_type()->mutable_shape()->mutable_dim(1)->set_dim_param("features");
  return model;
}

}  // namespace rewire::test
