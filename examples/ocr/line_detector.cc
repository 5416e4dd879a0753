// SPDX-License-Identifier: Apache-2.0
#include "rewire/examples/ocr/line_detector.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

namespace {

// The settings that PP-OCR's authors publish with the network ("differentiable binarization",
// arXiv:1911.08947).
constexpr int kShortSide = 736;       // smaller pictures are enlarged until their short side has this
constexpr int kMultiple = 32;         // the network halves its input five times
constexpr float kPixelIsText = 0.3F;  // a pixel's probability from which it is text
constexpr float kBoxIsText = 0.5F;    // a box's mean probability from which it is a line
constexpr float kGrowth = 1.6F;       // the network marks shrunken lines: grow by area * this / perimeter
constexpr int kSmallest = 3;          // pixels; less is noise

int RoundToMultiple(float pixels) {
  return std::max(kMultiple, static_cast<int>(std::lround(pixels / kMultiple)) * kMultiple);
}

// The map of text pixels, each also reaching one to the right and down: closes gaps of one pixel.
std::vector<char> TextPixels(const float* probability, int width, int height) {
  std::vector<char> text(static_cast<std::size_t>(width) * height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto is_text = [&](int row, int column) {
        return row >= 0 && column >= 0 && probability[row * width + column] > kPixelIsText;
      };
      text[y * width + x] =
          static_cast<char>(is_text(y, x) || is_text(y - 1, x) || is_text(y, x - 1) || is_text(y - 1, x - 1));
    }
  }
  return text;
}

// The box around one connected region, which is erased from `text`. Eight neighbors; an explicit stack,
// since a region may be as large as the picture.
Box TakeRegion(std::vector<char>& text, int width, int height, int x, int y) {
  Box box{x, y, x + 1, y + 1};
  std::vector<std::pair<int, int>> open = {{x, y}};
  text[y * width + x] = 0;
  while (!open.empty()) {
    const auto [at_x, at_y] = open.back();
    open.pop_back();
    box = {std::min(box.left, at_x), std::min(box.top, at_y), std::max(box.right, at_x + 1),
           std::max(box.bottom, at_y + 1)};
    for (int row = std::max(0, at_y - 1); row < std::min(height, at_y + 2); ++row) {
      for (int column = std::max(0, at_x - 1); column < std::min(width, at_x + 2); ++column) {
        if (text[row * width + column] == 0) continue;
        text[row * width + column] = 0;
        open.emplace_back(column, row);
      }
    }
  }
  return box;
}

float MeanInside(const float* probability, int width, const Box& box) {
  float sum = 0;
  for (int y = box.top; y < box.bottom; ++y) {
    for (int x = box.left; x < box.right; ++x) sum += probability[y * width + x];
  }
  return sum / static_cast<float>((box.right - box.left) * (box.bottom - box.top));
}

// From the map's pixels to the picture's, grown.
Box ToPicture(const Box& box, float scale_x, float scale_y, const Image& image) {
  const float across = static_cast<float>(box.right - box.left - 1);
  const float down = static_cast<float>(box.bottom - box.top - 1);
  const float growth = across * down * kGrowth / (2 * (across + down));
  const auto place = [](float position, float scale, int limit) {
    return std::clamp(static_cast<int>(std::lround(position * scale)), 0, limit);
  };
  return {place(static_cast<float>(box.left) - growth, scale_x, image.width),
          place(static_cast<float>(box.top) - growth, scale_y, image.height),
          place(static_cast<float>(box.right) - 1 + growth, scale_x, image.width),
          place(static_cast<float>(box.bottom) - 1 + growth, scale_y, image.height)};
}

}  // namespace

std::vector<Box> LineDetector::Find(const Image& image) {
  const float enlarged = std::max(
      1.0F, static_cast<float>(kShortSide) / static_cast<float>(std::min(image.width, image.height)));
  const int width = RoundToMultiple(static_cast<float>(image.width) * enlarged);
  const int height = RoundToMultiple(static_cast<float>(image.height) * enlarged);

  const std::vector<float> planes = ToPlanes(Resize(image, width, height), width);
  vm_.SetInput(0, rewire::TensorView(planes.data(), {1, 3, height, width}));
  vm_.Invoke();
  const rewire::Tensor result = vm_.Output(0);
  const float* probability = result.data<float>();

  std::vector<Box> lines;
  std::vector<char> text = TextPixels(probability, width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (text[y * width + x] == 0) continue;
      const Box region = TakeRegion(text, width, height, x, y);
      if (std::min(region.right - region.left, region.bottom - region.top) <= kSmallest) continue;
      if (MeanInside(probability, width, region) < kBoxIsText) continue;
      const Box line = ToPicture(region, static_cast<float>(image.width) / static_cast<float>(width),
                                 static_cast<float>(image.height) / static_cast<float>(height), image);
      if (line.right - line.left > kSmallest && line.bottom - line.top > kSmallest) lines.push_back(line);
    }
  }
  std::sort(lines.begin(), lines.end(),
            [](const Box& a, const Box& b) { return std::tie(a.top, a.left) < std::tie(b.top, b.left); });
  return lines;
}
