// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/window_rows.h"

#include <algorithm>

namespace rewire::kernel::cpu {

WindowRows::WindowRows(const Window& window, const void* image, std::int64_t position_bytes,
                       std::int64_t first_line, std::int64_t line)
    : window_(window),
      image_(static_cast<const std::byte*>(image)),
      position_bytes_(position_bytes),
      first_line_(first_line),
      line_(line) {}

void WindowRows::Write(std::int64_t first, std::int64_t count, std::byte* block) const {
  const auto& [depth, rows, columns] = window_.axes;
  std::int64_t line = line_ + first / columns.output, o = first % columns.output;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t oy = line % rows.output, oz = line / rows.output % depth.output;
    const std::int64_t image = line / rows.output / depth.output;
    std::byte* row = block + i * kLineBytes;
    std::int64_t at = 0;
    for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
      const std::int64_t z = depth.start(oz) + kz * depth.dilation;
      for (std::int64_t ky = 0; ky < rows.kernel; ++ky) {
        const std::int64_t y = rows.start(oy) + ky * rows.dilation;
        const bool inside = z >= 0 && z < depth.input && y >= 0 && y < rows.input;
        const std::int64_t from = (image * depth.input + z) * rows.input + y - first_line_;
        at = WriteSegment(inside ? image_ + from * columns.input * position_bytes_ : nullptr,
                          columns.start(o), at, row);
      }
    }
    PadUnits(at, row);
    if (++o == columns.output) {
      o = 0;
      ++line;
    }
  }
}

std::int64_t WindowRows::WriteSegment(const std::byte* line, std::int64_t begin, std::int64_t at,
                                      std::byte* row) const {
  const WindowAxis& columns = window_.axes[2];
  const auto write = [&](const std::byte* from, std::int64_t bytes) {
    WriteBytes(from, bytes, at, row);
    at += UnitsOf(bytes);
  };
  if (columns.dilation != 1) {
    for (std::int64_t k = 0, x = begin; k < columns.kernel; ++k, x += columns.dilation)
      write(line != nullptr && x >= 0 && x < columns.input ? line + x * position_bytes_ : nullptr,
            position_bytes_);
    return at;
  }
  const std::int64_t whole = columns.kernel * position_bytes_;
  if (line == nullptr) {
    write(nullptr, whole);
  } else if (begin >= 0 && begin + columns.kernel <= columns.input) {
    write(line + begin * position_bytes_, whole);
  } else {
    const std::int64_t first = std::clamp<std::int64_t>(-begin, 0, columns.kernel);
    const std::int64_t last = std::clamp<std::int64_t>(columns.input - begin, first, columns.kernel);
    write(nullptr, first * position_bytes_);
    write(line + (begin + first) * position_bytes_, (last - first) * position_bytes_);
    write(nullptr, (columns.kernel - last) * position_bytes_);
  }
  return at;
}

}  // namespace rewire::kernel::cpu
