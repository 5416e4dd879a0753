// SPDX-License-Identifier: Apache-2.0
// Finds lines of text in a picture, by PP-OCR's detection network.
#pragma once

#include "rewire/vm/vm.h"

#include <vector>

#include "rewire/examples/ocr/image.h"

class LineDetector {
 public:
  // The program must have one input and one output. The input is f32[1, 3, H, W], where H and W are multiples
  // of 32. The output, f32[1, 1, H, W], is the probability that a pixel belongs to text.
  explicit LineDetector(const rewire::Program& program) : vm_(program) {}

  // Upright boxes around the lines, from top to bottom. Throws rewire::Error.
  std::vector<Box> Find(const Image& image);

 private:
  rewire::VirtualMachine vm_;
};
