// SPDX-License-Identifier: Apache-2.0
// Prints tensors and values as numpy prints arrays: brackets by dimension, aligned columns, large ones
// summarized.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/vm/value.h"

namespace rewire::tools {

struct TensorTextOptions {
  std::int64_t threshold = 1000;  // a tensor of more elements is summarized: only the edges are printed
  std::int64_t edge = 3;          // elements printed at each end of a summarized dimension
  int digits = 6;                 // significant digits of floating-point numbers
  // The text of an element of int64, by its value. Empty: the number.
  std::function<std::string(std::int64_t)> element;
};

// "[[1, 2, ..., 9]\n [...]]" without a newline at the end; a scalar has no brackets.
std::string TensorText(const HostTensor& tensor, const TensorTextOptions& options = {});

// One line: "adt 1 (f32[2], 5, closure)". After 100 nodes the rest is "...".
std::string ValueText(const Value& value);

}  // namespace rewire::tools
