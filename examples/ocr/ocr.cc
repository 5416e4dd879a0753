// SPDX-License-Identifier: Apache-2.0
//
// Prints the lines of text in an image: two networks, two Programs, one process.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "rewire/examples/ocr/image.h"
#include "rewire/examples/ocr/line_detector.h"
#include "rewire/examples/ocr/line_reader.h"

namespace {

constexpr float kCertain = 0.5F;  // less certain lines are ornaments, not text

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Prints the lines of text in a picture, from top to bottom.");
  std::string picture;
  std::string detector;
  std::string recognizer;
  std::string characters;
  bool boxes = false;
  app.add_option("PNG", picture, "the picture")->required();
  app.add_option("--detector", detector, "PP-OCR's detection network (.rwx)")->required();
  app.add_option("--recognizer", recognizer, "PP-OCR's recognition network (.rwx)")->required();
  app.add_option("--characters", characters, "its characters, one a line")->required();
  app.add_flag("--boxes", boxes, "print where each line is: left, top, right, bottom and certainty");
  CLI11_PARSE(app, argc, argv);

  LineDetector find(rewire::Program::Open(detector));
  LineReader read(rewire::Program::Open(recognizer), ReadLines(characters));
  const Image image = ReadPng(picture);
  for (const Box& box : find.Find(image)) {
    const Reading reading = read.Read(Crop(image, box));
    if (reading.certainty < kCertain) continue;
    if (boxes) std::printf("%d %d %d %d %.2f ", box.left, box.top, box.right, box.bottom, reading.certainty);
    std::printf("%s\n", reading.text.c_str());
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "ocr: %s\n", error.what());
  return 1;
}
