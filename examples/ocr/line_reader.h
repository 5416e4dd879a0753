// SPDX-License-Identifier: Apache-2.0
// Reads a line of text in a picture, by PP-OCR's recognition network.
#pragma once

#include "rewire/vm/vm.h"

#include <string>
#include <vector>

#include "rewire/examples/ocr/image.h"

struct Reading {
  std::string text;     // UTF-8
  float certainty = 0;  // mean probability of the characters
};

class LineReader {
 public:
  // The program's one input is f32[1, 3, 48, W]; its one output the probabilities of each class at each step,
  // f32[1, T, C]. Class 0 is "nothing", the characters follow in order, and the last class is a space.
  LineReader(const rewire::Program& program, std::vector<std::string> characters)
      : vm_(program), characters_(std::move(characters)) {}

  // Throws rewire::Error, and std::runtime_error when the network has other classes than characters.
  Reading Read(const Image& line);

 private:
  rewire::VirtualMachine vm_;
  std::vector<std::string> characters_;
};
