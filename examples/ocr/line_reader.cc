// SPDX-License-Identifier: Apache-2.0
#include "rewire/examples/ocr/line_reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace {

constexpr int kHeight = 48;     // pixels, fixed by the network
constexpr int kShortest = 320;  // pixels; shorter lines are padded: what the network was trained on

}  // namespace

Reading LineReader::Read(const Image& line) {
  const int width = static_cast<int>(
      std::ceil(kHeight * static_cast<double>(line.width) / static_cast<double>(line.height)));
  const int padded = std::max(kShortest, width);
  const std::vector<float> planes = ToPlanes(Resize(line, width, kHeight), padded);
  vm_.SetInput(0, rewire::TensorView(planes.data(), {1, 3, kHeight, padded}));
  vm_.Invoke();
  const rewire::Tensor result = vm_.Output(0);
  const std::int64_t steps = result.shape()[1];
  const std::int64_t classes = result.shape()[2];
  if (classes != static_cast<std::int64_t>(characters_.size()) + 2) {
    throw std::runtime_error("the network knows " + std::to_string(classes - 2) +
                             " characters, the list has " + std::to_string(characters_.size()));
  }

  // Greedy decoding of connectionist temporal classification (Graves et al., 2006): a class that goes on is
  // one character, and class 0 parts two that are alike.
  Reading reading;
  int count = 0;
  std::int64_t before = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const float* scores = result.data<float>() + step * classes;
    const std::int64_t best = std::max_element(scores, scores + classes) - scores;
    if (best != 0 && best != before) {
      reading.text += best == classes - 1 ? " " : characters_[static_cast<std::size_t>(best - 1)];
      reading.certainty += scores[best];
      ++count;
    }
    before = best;
  }
  if (count > 0) reading.certainty /= static_cast<float>(count);
  return reading;
}
