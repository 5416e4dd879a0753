// SPDX-License-Identifier: Apache-2.0
// Finds lines of text in a picture, by PP-OCR's detection network.
#pragma once

#include "rewire/vm/vm.h"

#include <vector>

#include "rewire/examples/ocr/image.h"

class LineDetector {
 public:
  // The program's one input is f32[1, 3, H, W], H and W multiples of 32; its one output is the probability
  // that a pixel belongs to text, f32[1, 1, H, W].
  explicit LineDetector(const rewire::Program& program) : vm_(program) {}

  // Upright boxes around the lines, from top to bottom. Throws rewire::Error.
  std::vector<Box> Find(const Image& image);

 private:
  rewire::VirtualMachine vm_;
};
