// SPDX-License-Identifier: Apache-2.0
#include "rewire/examples/ocr/image.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace {

// A resized axis reads `from` and its right neighbor `next`, which counts for `share`.
struct Sample {
  int from;
  int next;
  float share;
};

std::vector<Sample> SampleAxis(int source, int target) {
  std::vector<Sample> samples(static_cast<std::size_t>(target));
  const double step = static_cast<double>(source) / target;
  for (int i = 0; i < target; ++i) {
    const double position = (i + 0.5) * step - 0.5;
    const int from = static_cast<int>(std::floor(position));
    samples[static_cast<std::size_t>(i)] = {std::clamp(from, 0, source - 1),
                                            std::clamp(from + 1, 0, source - 1),
                                            static_cast<float>(position - from)};
  }
  return samples;
}

}  // namespace

Image ReadPng(const std::string& path) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const auto fail = [&] {
    const std::string why = png.message;
    png_image_free(&png);
    throw std::runtime_error(path + ": " + why);
  };
  if (png_image_begin_read_from_file(&png, path.c_str()) == 0) fail();
  png.format = PNG_FORMAT_BGR;
  Image image{static_cast<int>(png.width), static_cast<int>(png.height),
              std::vector<std::uint8_t>(PNG_IMAGE_SIZE(png))};
  const png_color white = {255, 255, 255};  // shows through where the picture is transparent
  if (png_image_finish_read(&png, &white, image.pixels.data(), 0, nullptr) == 0) fail();
  return image;
}

Image Crop(const Image& image, const Box& box) {
  Image cut{box.right - box.left, box.bottom - box.top, {}};
  const std::size_t row_bytes = static_cast<std::size_t>(cut.width) * 3;
  cut.pixels.resize(row_bytes * static_cast<std::size_t>(cut.height));
  for (int y = 0; y < cut.height; ++y) {
    const std::size_t from = (static_cast<std::size_t>(box.top + y) * image.width + box.left) * 3;
    std::memcpy(cut.pixels.data() + y * row_bytes, image.pixels.data() + from, row_bytes);
  }
  return cut;
}

Image Resize(const Image& image, int width, int height) {
  Image resized{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width) * height * 3)};
  const std::vector<Sample> columns = SampleAxis(image.width, width);
  const std::size_t stride = static_cast<std::size_t>(image.width) * 3;
  std::uint8_t* out = resized.pixels.data();
  for (const Sample& row : SampleAxis(image.height, height)) {
    const std::uint8_t* upper = image.pixels.data() + row.from * stride;
    const std::uint8_t* lower = image.pixels.data() + row.next * stride;
    for (const Sample& column : columns) {
      for (int channel = 0; channel < 3; ++channel) {
        const auto across = [&](const std::uint8_t* line) {
          const float left = static_cast<float>(line[column.from * 3 + channel]);
          return left + (static_cast<float>(line[column.next * 3 + channel]) - left) * column.share;
        };
        const float top = across(upper);
        *out++ = static_cast<std::uint8_t>(std::lround(top + (across(lower) - top) * row.share));
      }
    }
  }
  return resized;
}

std::vector<float> ToPlanes(const Image& image, int stride) {
  std::vector<float> planes(static_cast<std::size_t>(3) * image.height * stride);
  const std::uint8_t* pixel = image.pixels.data();
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const std::size_t at = (static_cast<std::size_t>(channel) * image.height + y) * stride + x;
        planes[at] = static_cast<float>(*pixel++) / 127.5F - 1.0F;
      }
    }
  }
  return planes;
}
