// SPDX-License-Identifier: Apache-2.0
// Pictures: read from PNG, cut, resized, turned into a network's input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Rows of pixels, three bytes each in the order blue, green, red: what the PP-OCR networks were trained on.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

// A rectangle in pixels; right and bottom are the first ones outside.
struct Box {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};

// Throws std::runtime_error, naming the file.
Image ReadPng(const std::string& path);

// `box` must lie inside the image and not be empty.
Image Crop(const Image& image, const Box& box);

// Bilinear, pixel centers aligned.
Image Resize(const Image& image, int width, int height);

// Planes of floats in -1..1, shape [3, height, stride]: pixel values / 127.5 - 1. Columns from the image's
// width to `stride` are zero.
std::vector<float> ToPlanes(const Image& image, int stride);
